import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from counterveil.errors import CounterveilError, ParameterError
from counterveil.federation import files
from counterveil.federation.files import check_address, check_name
from counterveil.federation.site import check_site


def test_a_new_site_passes_its_check(new_site):
    site = new_site()
    facts = check_site(site.file.folder)
    assert facts["rows"] == 400
    assert facts["ledger"] == "sound"
    assert facts["left"].startswith("epsilon 3")


def test_nothing_is_made_twice(new_site, new_study):
    new_site()
    with pytest.raises(ParameterError, match="CV-P604"):
        new_site()
    new_study("North", "South")
    with pytest.raises(ParameterError, match="CV-P604"):
        new_study("North", "South")


def test_a_missing_key_is_found_by_the_check(new_site):
    site = new_site()
    (site.file.keys / "secret").unlink()
    with pytest.raises(ParameterError, match="CV-P607"):
        check_site(site.file.folder)


def test_a_certificate_names_its_hosts_and_is_signed_by_its_authority(tmp_path):
    files.make_server_keys(tmp_path, ("study.example.org", "10.0.0.7"), "coordinator")
    authority, server = (
        x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        for name in (files.AUTHORITY, files.CERTIFICATE)
    )
    server.verify_directly_issued_by(authority)
    names = server.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost", "study.example.org"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1", "10.0.0.7"]
    assert authority.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert not server.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_public_key_is_read_and_other_files_are_not(tmp_path, authority):
    assert isinstance(files.read_public_key(files.make_node_key(tmp_path)), ec.EllipticCurvePublicKey)
    for path in (authority, tmp_path / "none"):
        with pytest.raises(ParameterError, match="CV-P603"):
            files.read_public_key(path)


@pytest.mark.parametrize("name", ["", " a", "a/b", "..", "a" * 41, "a\n", "é"])
def test_names_that_could_be_paths_are_refused(name):
    with pytest.raises(ParameterError, match="CV-P601"):
        check_name(name)


@pytest.mark.parametrize("address", ["", "host", "host:0", "host:70000", ":80", "a b:80", "host:8x"])
def test_addresses_need_host_and_port(address):
    with pytest.raises(ParameterError, match="CV-P602"):
        check_address(address)


def test_the_certificate_of_the_coordinator_is_looked_at(new_site, authority):
    authority.write_text("hello")
    with pytest.raises(CounterveilError, match="CV-P606"):
        new_site()

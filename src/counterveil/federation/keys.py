"""Keys and certificates of coordinators and sites; these alone, and sums under masks, need `cryptography`."""

from __future__ import annotations

import ipaddress
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from counterveil.errors import refusal
from counterveil.federation.files import write_whole

try:
    from cryptography import x509
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
except ImportError:
    raise refusal("CV-E060", package="cryptography") from None

AUTHORITY, CERTIFICATE, KEY = "ca.crt", "server.crt", "server.key"
AUTHORITY_OF_NODE = "node-ca.crt"
NODE_KEY, NODE_PUBLIC = "node", "node.pub"
TOKEN, SECRET = "token", "secret"
_LOOPBACK = ("localhost", "127.0.0.1")
_DAYS = 825  # how long a certificate holds


def make_server_keys(
    folder: Path, hosts: tuple[str, ...], owner: str, authority_file: str = AUTHORITY
) -> None:
    """Write an authority's certificate and, signed by it, a server's with its key.

    The authority's key is dropped as soon as it has signed: nobody can make a second server later.
    """
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    root = _certificate(f"{owner} authority", authority, f"{owner} authority", authority, ())
    leaf = _certificate(owner, server, f"{owner} authority", authority, (*_LOOPBACK, *hosts))
    write_whole(folder / authority_file, root.public_bytes(serialization.Encoding.PEM))
    write_whole(folder / CERTIFICATE, leaf.public_bytes(serialization.Encoding.PEM))
    write_whole(folder / KEY, _pem(server, serialization.PrivateFormat.PKCS8))


def make_node_key(folder: Path) -> Path:
    """Write a node's key pair in OpenSSH's form and return the path of the public half."""
    key = ec.generate_private_key(ec.SECP384R1())
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    write_whole(folder / NODE_KEY, _pem(key, serialization.PrivateFormat.OpenSSH))
    write_whole(folder / NODE_PUBLIC, public + b"\n")
    return folder / NODE_PUBLIC


def make_secret(path: Path) -> None:
    """Write a random text that only its owner can read."""
    # 244 bits of the operating system's randomness.
    write_whole(path, uuid.uuid4().hex + uuid.uuid4().hex)


def read_public_key(path: Path) -> ec.EllipticCurvePublicKey:
    """Return a node's public key, or raise CV-P603."""
    try:
        key = serialization.load_ssh_public_key(path.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm):
        key = None
    if isinstance(key, ec.EllipticCurvePublicKey):
        return key
    raise refusal("CV-P603", parent=path.parent.name, name=path.name, node_public=NODE_PUBLIC)


def _certificate(
    subject: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    hosts: tuple[str, ...],
) -> x509.Certificate:
    """Return a certificate; without hosts it is an authority's."""
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.BasicConstraints(ca=not hosts, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .add_extension(_usage(authority=not hosts), critical=True)
    )
    if hosts:
        names = x509.SubjectAlternativeName([_host(host) for host in dict.fromkeys(hosts)])
        builder = builder.add_extension(names, critical=False)
        purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
        builder = builder.add_extension(purpose, critical=False)
    return builder.sign(signer, hashes.SHA384())


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey, form: serialization.PrivateFormat) -> bytes:
    text: bytes = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    return text

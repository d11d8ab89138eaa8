from threadpoolctl import threadpool_info, threadpool_limits

from counterveil.numerics.threads import one_thread


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_and_then_as_many_as_before():
    with one_thread(), threadpool_limits(2):
        before = blas_threads()
        with one_thread():
            assert blas_threads() == {1}
        assert blas_threads() == before

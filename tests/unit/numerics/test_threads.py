from threadpoolctl import threadpool_info, threadpool_limits

from counterveil.numerics.arrays import one_thread


def blas_threads():
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_linear_algebra_has_one_thread_until_the_last_of_the_answers_that_overlap_has_ended():
    with one_thread():  # loads the libraries
        pass
    with threadpool_limits(2):
        before = blas_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before



@pytest.mark.parametrize("size", [24, 24_000])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
@pytest.mark.parametrize("small", [True, False])
def test_zeros_keep_their_order_where_an_array_is_sorted_in_place(size, kind, small):
    plain = np.resize(np.array([2, -0.0, -1, 0.0, 1, 0.0, -0.0, -0.0], kind), size)
    with lazyarray.options(small_on_host=small):
        for view in (lambda a: a, lambda a: a[::-1], lambda a: a.reshape(8, -1).T):
            x, expected = lazyarray.asarray(plain.copy()), plain.copy()
            view(x).sort(kind="stable")
            view(expected).sort(kind="stable")
            assert np.array_equal(np.signbit(x), np.signbit(expected))

"""Nulls, effects and the rows of the probe."""

import numpy as np
import pytest
from scipy.stats import kstest

from toydepth.errors import InputError
from toydepth.transport import (
    KINDS,
    ProbeSettings,
    load_graph,
    make_graph,
    measure_field,
    measure_sizes,
    null_effects,
    null_field,
    run_cascade,
    slopes_by_seed,
)

VALUES = np.random.default_rng(0).standard_t(3, 20_000) + 0.5


def test_nulls_are_what_they_say():
    n0, n1, n2 = (null_field(kind, VALUES, seed=2) for kind in ("N0", "N1", "N2"))
    assert kstest(n0, "norm").pvalue > 0.001
    assert kstest((n1 - VALUES.mean()) / VALUES.std(), "norm").pvalue > 0.001
    np.testing.assert_array_equal(np.sort(n2), np.sort(VALUES))
    assert abs(np.corrcoef(n2, VALUES)[0, 1]) < 0.04
    assert abs(np.corrcoef(n0, n1)[0, 1]) < 0.04
    np.testing.assert_array_equal(null_field("N2", VALUES, seed=2), n2)
    assert not np.array_equal(null_field("N2", VALUES, seed=3), n2)


def test_permutations_are_uniform():
    first = np.array([np.flatnonzero(null_field("N2", np.arange(5), seed) == 0)[0] for seed in range(3000)])
    assert np.bincount(first) == pytest.approx(600, abs=4 * np.sqrt(480))


def test_effects_by_hand():
    quantity = {
        "N0": np.array([1.0, 2.0, 3.0, 4.0]),
        "N2": np.array([2.0, 4.0, 4.0, np.nan]),
        "field": np.array([2.5, 4.5, 4.5, 5.0]),
    }
    effects = null_effects(quantity, order="as_is")
    distribution, assignment = effects["distribution"], effects["assignment"]
    assert distribution.mean == pytest.approx(4 / 3) and (distribution.num_pairs, distribution.num_left_out) == (3, 1)
    # Pairs 1, 2, 1: deviation 0.577, error 0.333, t of 2 degrees 4.303.
    assert distribution.interval == pytest.approx((4 / 3 - 4.303 / 3, 4 / 3 + 4.303 / 3), abs=1e-3)
    assert assignment.mean == 0.5 and assignment.interval == pytest.approx((0.5, 0.5))
    assert not assignment.by_construction
    assert null_effects(quantity)["assignment"].by_construction, "a permuted field is a draw of N2"
    none = null_effects({name: np.full(2, np.nan) for name in quantity})["distribution"]
    assert (none.mean, none.interval, none.num_pairs, none.num_left_out) == (None, None, 0, 2)
    assert null_effects({name: value[:1] for name, value in quantity.items()})["distribution"].interval is None


def test_a_row_a_kind_and_seed():
    field = VALUES[:2000]
    settings = ProbeSettings(m_BA=3, percentile=80, seeds=(0, 5), order="as_is", cap=3)
    table = measure_field(field, settings)
    assert table["kind"].tolist() == [*KINDS] * 2 and table["seed"].tolist() == [0] * 4 + [5] * 4
    row = table.iloc[4]
    cascade = run_cascade(make_graph(2000, 3, 5), field, percentile=80, cap=3)
    assert (row["size"], row["duration"], row["threshold"]) == (cascade.size, cascade.duration, cascade.threshold)
    assert row["efficiency"] == cascade.size / (2000 * cascade.duration)
    assert row["capped"] and cascade.capped
    assert table["problem"].isna().all()
    assert settings.record()["seeds"] == (0, 5)
    sampled = measure_field(VALUES, num_nodes=300, kinds=("field",))
    assert sampled["num_nodes"].tolist() == [300] * 4


@pytest.mark.parametrize(
    ("field", "words"),
    [
        (np.zeros(500), "zero field"),
        (np.full(500, 2.0), "constant field"),
        (np.append(VALUES[:499], np.nan), "NaN or infinities"),
        (np.append(np.zeros(480), VALUES[:20]), "too many zeros: threshold 0"),
        (np.sign(VALUES[:500]), "no value above the threshold"),
        (VALUES[:9], "fewer than 10 nodes"),
        (VALUES[:0], "fewer than 10 nodes"),
    ],
)
def test_never_a_number_for_a_field_without_a_cascade(field, words):
    table = measure_field(field)
    assert table["problem"].tolist() == [words] * 4 and set(table["kind"]) == {"field"}
    assert table[["size", "duration", "efficiency", "threshold", "conservation_error"]].isna().all(axis=None)


def test_a_sample_does_not_hide_what_is_not_finite():
    field = np.append(VALUES, np.nan)
    assert measure_field(field, num_nodes=20)["problem"].tolist() == ["NaN or infinities"] * 4


def test_order_matters_where_large_values_sit_on_hubs():
    """as_is, falling along the old nodes: an assignment effect. The same values permuted: none."""
    field = np.sort(np.abs(VALUES[:3000]))[::-1].copy()
    for order, seen in (("as_is", True), ("permuted", False)):
        table = measure_field(field, ProbeSettings(order=order, seeds=tuple(range(8))))
        by_kind = {kind: np.log(part["size"].to_numpy(float)) for kind, part in table.groupby("kind")}
        effect = null_effects(by_kind, order=order, confidence=0.99)["assignment"]
        low, high = effect.interval
        assert (low > 0 or high < 0) is seen
        assert effect.by_construction is not seen


def test_slopes_of_each_seed():
    table = measure_sizes(VALUES, (100, 1000, 10_000))
    one = measure_field(VALUES, num_nodes=1000)
    assert table[table["num_nodes"] == 1000].reset_index(drop=True).equals(one)
    slopes = slopes_by_seed(table)
    assert slopes["kind"].tolist() == [*KINDS] * 4 and slopes["seed"].tolist() == [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert slopes["D"].to_numpy() == pytest.approx(1, abs=0.12)
    np.testing.assert_allclose(slopes["delta"], slopes["D"] - slopes["z"] - 1, atol=1e-12)
    short = slopes_by_seed(table[table["num_nodes"] > 100])
    assert short[["D", "z"]].isna().all(axis=None)


def test_n0_and_n1_are_one_field_where_the_mean_is_zero():
    """Cascades have no scale."""
    values = VALUES - VALUES.mean()
    graph = load_graph(len(values))
    n1 = null_field("N1", values, 0)
    assert run_cascade(graph, n1).size == run_cascade(graph, n1 / values.std()).size


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: null_field("N3", VALUES), "kind must be one of N0, N1, N2, got 'N3'"),
        (lambda: null_field("N0", VALUES, -1), "seed must be an integer, 0 or more, got -1"),
        (lambda: null_effects({"field": VALUES, "N0": VALUES}), "quantity must hold field, N0 and N2, got none for N2"),
        (
            lambda: null_effects({"field": VALUES, "N0": VALUES, "N2": VALUES[:4]}),
            "quantity must hold a number a graph seed for each kind",
        ),
        (lambda: measure_sizes(VALUES, ()), "sizes must be one or more numbers of nodes"),
        (lambda: measure_sizes(VALUES, (100, 100)), "sizes must be one or more numbers of nodes, each once"),
        (lambda: measure_sizes(VALUES, (100, 30_000)), "num_nodes must be 1 ... 20000, the field's length, got 30000"),
        (lambda: ProbeSettings(seeds=()), "seeds must be one or more distinct numbers"),
        (lambda: ProbeSettings(seeds=(1, 1)), "seeds must be one or more distinct numbers"),
        (lambda: measure_field(VALUES, kinds=("N4",)), "kinds must be one of field, N0, N1, N2, got 'N4'"),
    ],
)
def test_what_cannot_be_used(call, message):
    with pytest.raises(InputError, match=message):
        call()

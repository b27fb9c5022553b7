"""`toydepth trace`: causal tracing of facts through a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from toydepth.cli.output import StatusLine, check_given, make_folder, print_json

if TYPE_CHECKING:
    import pandas as pd

    from toydepth.llm.traced import Tracing


def trace(
    model: str,
    facts: str,
    noise: float = 3.0,
    samples: int = 10,
    seed: int = 0,
    include_unknown: bool = False,
    batch_size: int = 128,
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    device: str = "auto",
    revision: str | None = None,
    folder: str = "trace",
    json: bool = False,
) -> int:
    """Causal tracing: noise hides the subject of a fact; which layer and position, put back, brings the answer back?

    Args:
        model: A safetensors folder, a .gguf file, or a name on the hub (extra `llm`).
        facts: A .jsonl file, {"prompt": ..., "subject": ..., "answer": ...} a line, as docs/examples/facts.jsonl.
        noise: On the subject's embeddings, in standard deviations of the subjects' embeddings.
        samples: Draws of noise a fact.
        seed: Of the noise.
        include_unknown: Average over facts that the model does not know, too.
        batch_size: Rows at a time; changes no number.
        dtype: That the model computes in.
        device: auto, cpu, cuda, mps, or split over several.
        revision: Of a model on the hub: a branch, a tag such as step3000, a commit.
        folder: For trace.parquet, trace_positions.parquet, trace.json and the figure.
        json: Print the table by role and layer.
    """
    from toydepth.fit.checks import plain
    from toydepth.llm import load_model
    from toydepth.llm.facts import read_facts
    from toydepth.llm.tracing import trace_facts
    from toydepth.report.trace_figure import write_trace_figure
    from toydepth.runs.files import replacing, write_json

    check_given("folder", folder)
    given = read_facts(facts)
    target = make_folder(folder)
    loaded = load_model(model, dtype=dtype, device=device, revision=revision)

    with StatusLine() as line:
        found = trace_facts(
            loaded.model,
            loaded.tokenizer,
            given,
            noise=noise,
            samples=samples,
            seed=seed,
            batch_size=batch_size,
            include_unknown=include_unknown,
            after_fact=lambda now, count: line.tell(f"{len(now.facts)} of {count} facts, {now.num_unknown} not known"),
        )
    table = found.table()
    total, low, high = found.total()
    about: dict[str, Any] = {"model": model, "weights": loaded.weights, "dtype": str(loaded.dtype)}
    about |= {"device": str(loaded.device), "file": facts, "depth": found.depth, "noise": noise}
    about |= {"noise_std": found.noise, "samples": samples, "seed": seed, "include_unknown": include_unknown}
    about |= {"facts": len(found.facts), "unknown": found.num_unknown, "used": len(found.used)}
    about |= {"at_position_0": sum(0 in one.located.subject for one in found.used)}
    about |= {"total_effect": total, "total_effect_low": low, "total_effect_high": high}
    about = plain({**about, "each": _each(found, loaded.tokenizer)})
    for name, rows in (("trace", table), ("trace_positions", found.positions())):
        with replacing(target / f"{name}.parquet") as temporary:
            rows.to_parquet(temporary)
    layers = plain(table.to_dict("records"))
    write_json(target / "trace.json", {"schema": 1, **about, "layers": layers})
    written = [target / f"{name}" for name in ("trace.parquet", "trace_positions.parquet", "trace.json")]
    written += write_trace_figure(table, target).paths
    if json:
        print_json({**about, "layers": layers, "written": [str(path) for path in written]})
        return 0
    _print(table, about)
    print(f"\nwritten: {target}: {', '.join(path.name for path in written)}")
    return 0


def _each(found: Tracing, tokenizer: Any) -> list[dict[str, Any]]:
    """The facts one by one, those that were left out too."""
    rows = []
    for one in found.facts:
        row = {"prompt": one.fact.prompt, "subject": one.fact.subject, "answer": one.fact.answer}
        row |= {"answer_token": tokenizer.decode([one.located.answer]), "predicted": tokenizer.decode([one.predicted])}
        rows.append(row | {"known": one.known, "clean": one.clean, "corrupted": one.corrupted})
    return rows


def _print(table: pd.DataFrame, about: dict[str, Any]) -> None:
    """A line a layer, a column a role; then the layer of each role's greatest effect."""
    from toydepth.fit.law.text import align

    print(f"{about['model']}: {about['weights']}, computed in {about['dtype']} on {about['device']}")
    print(f"{about['facts']} facts, {about['unknown']} of them not known to the model; averages over {about['used']}")
    if about["at_position_0"]:
        print(f"{about['at_position_0']} of these have noise on position 0, where many models keep an attention sink")
    low, high = about["total_effect_low"], about["total_effect_high"]
    known = "" if low is None else f" [{low:.3f}, {high:.3f}]"
    print(
        f"noise {about['noise']:g} standard deviations ({about['noise_std']:.4g}) on the subject, {about['samples']} "
        f"draws; the answer loses {about['total_effect']:.3f}{known} of probability\n"
    )
    roles = list(dict.fromkeys(table["role"]))
    shown = table.pivot(index="layer", columns="role", values="effect")
    rows = [["layer", *roles]]
    for layer in range(about["depth"] + 1):
        rows.append([str(layer), *(_number(shown.loc[layer, role]) for role in roles)])
    print("\n".join(align(rows)))
    print("probability of the answer's first token that one restored state brings back\n")
    rows = [["greatest effect", "layer", "effect", "95 % interval", "facts"]]
    for role in roles:
        best: dict[Any, Any] = table.loc[table.query("role == @role")["effect"].idxmax()].to_dict()
        reach = (
            "-" if best["effect_low"] != best["effect_low"] else f"{best['effect_low']:.3f} {best['effect_high']:.3f}"
        )
        rows.append([role, str(best["layer"]), f"{best['effect']:.3f}", reach, str(best["facts"])])
    print("\n".join(align(rows)))
    print("an interval is of its layer; that the layer is the greatest was chosen after the fact")


def _number(value: Any) -> str:
    """Three places, and no -0.000.

    >>> _number(-1e-5), _number(0.58149)
    ('0.000', '0.581')
    """
    return f"{round(float(value), 3) + 0.0:.3f}"

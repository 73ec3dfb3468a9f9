"""`albert info`: what a model is and what it costs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from albert.cli.stores import number_of


def info(
    model: Annotated[str, typer.Argument(help="A model folder, a config.json, or a preset (base, xxlarge-v1, …).")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Change a field: --set num_attention_heads=32.")
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Texts per batch, for the memory figures.")] = 32,
    length: Annotated[int | None, typer.Option(min=1, help="Tokens per text (default: up to 512).")] = None,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what a model is and costs.

    Configuration, parameters by part, bytes, arithmetic and memory, and whether transformers can open it.
    """
    from albert.model.inspection import describe, inspect
    from albert.settings import parse_assignments

    seen = inspect(model, parse_assignments(set_ or []))
    facts = describe(seen, batch=batch, length=length or min(512, seen.config.max_position_embeddings))
    if json_:
        print(json.dumps(facts, indent=2))
    else:
        print("\n".join(_lines(facts)))


def _lines(facts: dict[str, Any]) -> list[str]:
    config, memory, sizes = facts["config"], facts["memory"], facts["bytes"]
    lines = [
        f"{facts['name']}",
        f"  shape         vocabulary {config['vocab_size']:,}, embedding {config['embedding_size']}, hidden "
        f"{config['hidden_size']}, {config['num_hidden_layers']} layers, {config['num_attention_heads']} heads, "
        f"feed-forward {config['intermediate_size']}, {config['max_position_embeddings']} positions",
        f"  sharing       {config['sharing']} ({number_of(config['num_hidden_groups'], 'group')} of "
        f"{number_of(config['inner_group_num'], 'inner layer')})",
        f"  activation    {config['hidden_act']}, dropout {config['hidden_dropout_prob']:g} hidden, "
        f"{config['attention_probs_dropout_prob']:g} attention, {config['classifier_dropout_prob']:g} classifier",
        f"  heads         {', '.join(facts['heads']) or 'none'}",
        "  parameters",
    ]
    lines += [f"    {part:<22} {count:>13,}" for part, count in facts["parameters"].items()]
    disk = f", {_size(sizes['on_disk'])} on disk" if sizes["on_disk"] else ""
    opens = "yes" if facts["transformers_opens_it"] else "no: it would compute another model (model_type: albert-lite)"
    return [
        *lines,
        f"  weights       {_size(sizes['float32'])} in float32, {_size(sizes['float16'])} in float16{disk}",
        f"  arithmetic    {facts['flops_per_token'] / 1e9:.3g} GFLOP per token at length {memory['length']}, forward",
        f"  memory        {memory['batch']} texts of {memory['length']} tokens, estimated: "
        f"{_size(memory['inference'])} to run, {_size(memory['training'])} to train, "
        f"{_size(memory['training_with_checkpointing'])} with gradient checkpointing",
        f"  transformers  {opens}",
    ]


def _size(count: int) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"

"""`albert convert`: somebody's checkpoint into a model folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from albert.cli.progress import progress_line


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            help="A folder with pytorch_model.bin, a TensorFlow checkpoint (model.ckpt-best), a hub module."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The model folder to write.")],
    config: Annotated[Path | None, typer.Option(help="The configuration, if it is not beside the weights.")] = None,
    vocab: Annotated[
        Path | None, typer.Option(help="The SentencePiece model, if it is not beside the weights.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read and check everything, write nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Turn somebody else's checkpoint into a model folder.

    A legacy pickle, or one of Google's TensorFlow checkpoints.
    """
    from albert.interop.convert import read_checkpoint, write_folder
    from albert.model.config import to_json

    with progress_line("convert") as show:
        converted = read_checkpoint(source, config=config, vocab=vocab, progress=show)
        if not dry_run:
            show(0.9, f"writing {out}")
            write_folder(converted, out)
    model = converted.model
    parameters = sum(parameter.numel() for parameter in model.parameters())
    if as_json:
        facts = {
            "source": str(converted.source.weights),
            "kind": converted.source.kind,
            "out": None if dry_run else str(out),
            "parameters": parameters,
            "heads": list(model.heads),
            "config": to_json(model.config),
            "tokenizer": str(converted.source.vocab) if converted.tokenizer else None,
            "new": list(converted.new),
            "dropped": list(converted.dropped),
            "notes": list(converted.notes),
        }
        print(json.dumps(facts, indent=2))
        return
    shape = model.config
    print(
        f"{converted.source.weights}: {parameters:,} parameters, {shape.num_hidden_layers} layers of "
        f"{shape.hidden_size}, {shape.num_attention_heads} heads, {shape.hidden_act}; "
        f"with {', '.join(model.heads) or 'no head'}{' and a tokenizer' if converted.tokenizer else ''}"
    )
    for title, names in (("new, drawn at random", converted.new), ("not used", converted.dropped)):
        if names:
            print(f"{title}: {', '.join(names)}")
    print("nothing written (--dry-run)" if dry_run else f"written: {out}")
    for note in converted.notes:
        print(f"note: {note}", file=sys.stderr)

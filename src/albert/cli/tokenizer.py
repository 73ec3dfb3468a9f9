"""`albert tokenizer …`: parse, call, print."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from albert.cli.progress import duration, progress_line
from albert.errors import UsageError

if TYPE_CHECKING:
    from albert.tokenizer import Tokenizer
    from albert.tokenizer.training import TrainResult, TrainSettings

app = typer.Typer(no_args_is_help=True, help="Make the vocabulary that cuts text into pieces.")


@app.callback()
def tokenizer() -> None:
    """Make the vocabulary that cuts text into pieces."""


@app.command()
def train(
    text: Annotated[
        list[str], typer.Argument(help="Files, folders or globs: .txt, .jsonl, .parquet [.gz, .xz, .zst].")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the tokenizer.")],
    vocab_size: Annotated[int, typer.Option(help="Pieces, with the 5 special ones.")] = 30_000,
    cased: Annotated[bool, typer.Option("--cased", help="Keep capital letters.")] = False,
    keep_accents: Annotated[bool, typer.Option("--keep-accents", help="Keep accents, as in 'é'.")] = False,
    field: Annotated[str, typer.Option(help="Field of .jsonl, or column of .parquet, that holds the text.")] = "text",
    force: Annotated[bool, typer.Option("--force", help="Replace another tokenizer in that folder.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done and what it costs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Train a SentencePiece vocabulary with ALBERT's recipe.

    On text of any language and size.
    """
    from albert.tokenizer.estimate import estimate_training
    from albert.tokenizer.normalisation import Normalisation
    from albert.tokenizer.training import TrainSettings, train_tokenizer

    normalisation = Normalisation(lower_case=not cased, keep_accents=keep_accents)
    settings = TrainSettings(vocab_size=vocab_size, normalisation=normalisation, text_field=field)
    earlier = _earlier(out, settings, force=force)
    if dry_run:
        facts = _settings(settings) | {"out": str(out)} | asdict(estimate_training(text, settings))
        print(_json(facts) if as_json else _plan_text(facts))
        return
    started = time.monotonic()
    with progress_line("training") as show:
        result = train_tokenizer(text, settings, progress=show)
    if earlier and earlier.fingerprint != result.tokenizer.fingerprint and not force:
        raise UsageError(f"{out}: holds a tokenizer of other text: choose another folder, or replace it (--force)")
    result.tokenizer.save(out)
    facts = _result(out, result, settings, seconds=time.monotonic() - started)
    print(_json(facts) if as_json else _result_text(facts))


def _earlier(out: Path, settings: TrainSettings, *, force: bool) -> Tokenizer | None:
    """Return the tokenizer that is in the folder, if any; refuse one of other settings before the work begins."""
    from albert.tokenizer import Tokenizer
    from albert.tokenizer.folder import MODEL_FILE, refuse_other_folder

    refuse_other_folder(out)
    if force or not (out / MODEL_FILE).exists():
        return None
    earlier = Tokenizer.load(out)
    was, now = _settings(earlier), _settings(settings)
    if differences := [f"{name} is {was[name]}, not {now[name]}" for name in was if was[name] != now[name]]:
        raise UsageError(
            f"{out}: holds another tokenizer ({', '.join(differences)}): choose another folder, or replace it (--force)"
        )
    return earlier


def _settings(of: TrainSettings | Tokenizer) -> dict[str, Any]:
    letters = of.normalisation
    return {"vocab_size": of.vocab_size, "lower_case": letters.lower_case, "keep_accents": letters.keep_accents}


def _result(out: Path, result: TrainResult, settings: TrainSettings, *, seconds: float) -> dict[str, Any]:
    quality = result.quality
    return _settings(settings) | {
        "tokenizer": str(out),
        "fingerprint": result.tokenizer.fingerprint,
        "documents": result.num_documents,
        "characters": result.num_characters,
        "sampled_characters": result.num_sampled,
        "character_coverage": result.character_coverage,
        "held_out": {
            "documents": result.num_held_out,
            "characters": quality.characters,
            "coverage": quality.coverage,
            "unknown_rate": quality.unknown_rate,
            "pieces_per_word": quality.pieces_per_word,
            "characters_per_piece": quality.characters_per_piece,
        },
        "findings": {key: asdict(found) for key, found in result.report.findings.items()},
        "notes": result.report.lines(),
        "seconds": round(seconds, 3),
    }


def _plan_text(facts: dict[str, Any]) -> str:
    files = f"{facts['num_files']} file{'' if facts['num_files'] == 1 else 's'}"
    return "\n".join(
        [
            f"text        {files}, about {facts['num_characters']:,} characters",
            f"sample      {facts['num_sampled']:,} characters",
            f"vocabulary  {facts['vocab_size']:,} pieces, {_letters(facts)}",
            f"tokenizer   {facts['out']}",
            f"cost        about {duration(facts['seconds'])}, {facts['memory'] / 1e6:,.0f} MB of memory",
        ]
    )


def _result_text(facts: dict[str, Any]) -> str:
    held_out = facts["held_out"]
    measured = (
        f"{held_out['documents']:,} held-out documents"
        if held_out["documents"]
        else "the training text (too few documents to hold any out)"
    )
    lines = [
        f"{facts['tokenizer']}: {facts['vocab_size']:,} pieces, {_letters(facts)}, {facts['fingerprint'][:12]}",
        f"trained in {duration(facts['seconds'])} on {facts['sampled_characters']:,} of {facts['characters']:,} "
        f"characters in {facts['documents']:,} documents",
        f"on {measured}:",
        f"  coverage    {held_out['coverage']:.4%} of the characters",
        f"  unknown     {held_out['unknown_rate']:.4%} of the pieces",
        f"  pieces      {held_out['pieces_per_word']:.3f} per word, "
        f"of {held_out['characters_per_piece']:.2f} characters",
    ]
    return "\n".join([*lines, *(f"note: {note}" for note in facts["notes"])])


def _letters(facts: dict[str, Any]) -> str:
    case = "lower case" if facts["lower_case"] else "cased"
    return f"{case}, accents {'kept' if facts['keep_accents'] else 'removed'}"


def _json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False)

"""The paper's studies as tables (Lan et al. 2019, Tables 3 to 8, 11 and 12, Figures 1 and 2, Table 2's last column).

Numbers are as printed. Where the paper judges by the mean over five tasks, a finding is judged here by held-out MLM
loss and by the tasks at hand. The order is that in which `albert study all` runs them.
"""

from __future__ import annotations

from typing import Any

from albert.study.beyond import BEYOND
from albert.study.tables import COST, INTRINSIC, Finding, Of, Row, Study

TASKS = ("SQuAD1.1", "SQuAD2.0", "MNLI", "SST-2", "RACE", "Avg")
ALL, ATTENTION, FFN, NONE = ("all", "attention", "ffn", "none")
DROPOUT = {"model.hidden_dropout_prob": 0.1, "model.attention_probs_dropout_prob": 0.1}


def printed(scores: str, **more: str) -> dict[str, str]:
    """Return the scores of a row of the paper, in the order in which its tables have them."""
    return more | dict(zip(TASKS, scores.split(), strict=True))


def embedding(factor: float, sharing: str) -> dict[str, Any]:
    """Return the settings of an embedding of a share of H."""
    return {"model.embedding_size": Of("hidden_size", factor), "model.sharing": sharing}


def wide(factor: float) -> dict[str, Any]:
    """Return the settings of a wider model: heads and feed-forward grow with H."""
    names = ("hidden_size", "intermediate_size", "num_attention_heads")
    return {f"model.{name}": Of(name, factor) for name in names}


SENTENCE_ORDER = Study(
    "sentence-order",
    "What does predicting the next sentence (NSP), or the order of two segments (SOP), teach?",
    "Table 5",
    rows=(
        Row(
            "none",
            {"data.objective": "none"},
            printed("88.6/81.5 78.1/75.3 81.5 89.9 61.7 79.0", MLM="54.9", NSP="52.4", SOP="53.3"),
        ),
        Row(
            "NSP",
            {"data.objective": "nsp"},
            printed("88.4/81.5 77.2/74.6 81.6 91.1 62.3 79.2", MLM="54.5", NSP="90.5", SOP="52.0"),
        ),
        Row(
            "SOP",
            {"data.objective": "sop"},
            printed("89.3/82.3 80.0/77.1 82.0 90.3 64.0 80.1", MLM="54.0", NSP="78.9", SOP="86.5"),
        ),
    ),
    findings=(
        Finding("A model trained on NSP is at chance on SOP", "NSP", "same", 0.5, ("sop_accuracy",)),
        Finding("A model trained on SOP knows SOP: above 65%", "SOP", "better", 0.65, ("sop_accuracy",)),
        Finding("A model trained on SOP solves NSP as well: above 55%", "SOP", "better", 0.55, ("nsp_accuracy",)),
        Finding("A model trained on NSP knows NSP", "NSP", "better", "SOP", ("nsp_accuracy",)),
        Finding("SOP costs next to no masked words", "SOP", "same", "none", ("mlm_accuracy",)),
        Finding("SOP helps on tasks, against no such loss", "SOP", "better", "none", ("sst-2", "mnli")),
        Finding("SOP helps on tasks, against NSP", "SOP", "better", "NSP", ("sst-2", "mnli")),
    ),
)

SHARING = Study(
    "sharing",
    "What does it cost to share all parameters across layers, or those of attention or the feed-forward alone?",
    "Table 4",
    rows=(
        Row("E=H, all", embedding(1, ALL), printed("88.6/81.5 79.2/76.6 82.0 90.6 63.3 79.8", parameters="31M")),
        Row(
            "E=H, attention",
            embedding(1, ATTENTION),
            printed("89.9/82.7 80.0/77.2 84.0 91.4 67.7 81.6", parameters="83M"),
        ),
        Row("E=H, FFN", embedding(1, FFN), printed("89.2/82.1 78.2/75.4 81.5 90.8 62.6 79.5", parameters="57M")),
        Row("E=H, none", embedding(1, NONE), printed("90.4/83.2 80.4/77.6 84.5 92.8 68.2 82.3", parameters="108M")),
        Row("E=H/6, all", embedding(1 / 6, ALL), printed("89.3/82.3 80.0/77.1 82.0 90.3 64.0 80.1", parameters="12M")),
        Row(
            "E=H/6, attention",
            embedding(1 / 6, ATTENTION),
            printed("89.9/82.8 80.7/77.9 83.4 91.9 67.6 81.7", parameters="64M"),
        ),
        Row("E=H/6, FFN", embedding(1 / 6, FFN), printed("88.9/81.6 78.6/75.6 82.3 91.7 64.4 80.2", parameters="38M")),
        Row(
            "E=H/6, none", embedding(1 / 6, NONE), printed("89.9/82.8 80.3/77.3 83.2 91.5 67.9 81.6", parameters="89M")
        ),
    ),
    findings=(
        Finding("Sharing everything costs quality, at E=H", "E=H, all", "worse", "E=H, none"),
        Finding("Sharing everything costs quality, at E=H/6", "E=H/6, all", "worse", "E=H/6, none"),
        Finding("Sharing attention alone costs nothing, at E=H/6", "E=H/6, attention", "same", "E=H/6, none"),
        Finding("Most of the loss is from sharing the FFN, at E=H/6", "E=H/6, FFN", "worse", "E=H/6, attention"),
        Finding("Most of the loss is from sharing the FFN, at E=H", "E=H, FFN", "worse", "E=H, attention"),
    ),
)

EMBEDDING = Study(
    "embedding",
    "How large must the embedding be, with and without shared layers?",
    "Table 3",
    rows=(
        Row(
            "none, E=H/12",
            embedding(1 / 12, NONE),
            printed("89.9/82.9 80.1/77.8 82.9 91.5 66.7 81.3", parameters="87M"),
        ),
        Row(
            "none, E=H/6", embedding(1 / 6, NONE), printed("89.9/82.8 80.3/77.3 83.7 91.5 67.9 81.7", parameters="89M")
        ),
        Row(
            "none, E=H/3", embedding(1 / 3, NONE), printed("90.2/83.2 80.3/77.4 84.1 91.9 67.3 81.8", parameters="93M")
        ),
        Row("none, E=H", embedding(1, NONE), printed("90.4/83.2 80.4/77.6 84.5 92.8 68.2 82.3", parameters="108M")),
        Row(
            "all, E=H/12", embedding(1 / 12, ALL), printed("88.7/81.4 77.5/74.8 80.8 89.4 63.5 79.0", parameters="10M")
        ),
        Row("all, E=H/6", embedding(1 / 6, ALL), printed("89.3/82.3 80.0/77.1 81.6 90.3 64.0 80.1", parameters="12M")),
        Row("all, E=H/3", embedding(1 / 3, ALL), printed("88.8/81.5 79.1/76.3 81.5 90.3 63.4 79.6", parameters="16M")),
        Row("all, E=H", embedding(1, ALL), printed("88.6/81.5 79.2/76.6 82.0 90.6 63.3 79.8", parameters="31M")),
    ),
    findings=(
        Finding("Without sharing, larger embeddings are better", "none, E=H", "better", "none, E=H/12"),
        Finding("With sharing, E=H/6 is better than E=H/12", "all, E=H/6", "better", "all, E=H/12"),
        Finding("With sharing, E=H/6 is the best: better than E=H", "all, E=H/6", "better", "all, E=H"),
        Finding("With sharing, E=H/6 is the best: better than E=H/3", "all, E=H/6", "better", "all, E=H/3"),
    ),
)


def depth(layers: int, *, after: int | None = None, scores: str | None = None) -> Row:
    """Return a depth of Table 11; the printed ones are warm-started from the one before, but for the first."""
    name = ("1 layer" if layers == 1 else f"{layers} layers") + (", warm" if after else "")
    start = None if after is None else "1 layer" if after == 1 else f"{after} layers, warm"
    return Row(name, {"model.num_hidden_layers": layers}, printed(scores) if scores else {}, start=start)


DEPTH = Study(
    "depth",
    "What do more layers bring when all share their parameters, and does a warm start matter?",
    "Table 11",
    rows=(
        depth(1, scores="31.1/22.9 50.1/50.1 66.4 80.8 40.1 52.9"),
        depth(3),
        depth(6),
        depth(12),
        depth(24),
        depth(3, after=1, scores="79.8/69.7 64.4/61.7 77.7 86.7 54.0 71.2"),
        depth(6, after=3, scores="86.4/78.4 73.8/71.1 81.2 88.9 60.9 77.2"),
        depth(12, after=6, scores="89.8/83.3 80.7/77.9 83.3 91.7 66.7 81.5"),
        depth(24, after=12, scores="90.3/83.3 81.8/79.0 83.3 91.5 68.7 82.1"),
    ),
    findings=(
        Finding("3 layers are better than 1", "3 layers, warm", "better", "1 layer"),
        Finding("6 layers are better than 3", "6 layers, warm", "better", "3 layers, warm"),
        Finding("12 layers are better than 6", "12 layers, warm", "better", "6 layers, warm"),
        Finding("24 layers are better than 12, by little", "24 layers, warm", "better", "12 layers, warm"),
        Finding("From nothing too, 12 layers are better than 3", "12 layers", "better", "3 layers"),
    ),
)

WIDTH = Study(
    "width",
    "What does more width bring, at three shared layers?",
    "Table 12",
    base={"model.num_hidden_layers": 3},
    rows=(
        Row("H", wide(1), printed("79.8/69.7 64.4/61.7 77.7 86.7 54.0 71.2", parameters="18M")),
        Row("2H", wide(2), printed("83.3/74.1 69.1/66.6 79.7 88.6 58.2 74.6", parameters="60M")),
        Row("4H", wide(4), printed("85.0/76.4 71.0/68.1 80.3 90.4 60.4 76.3", parameters="225M")),
        Row("6H", wide(6), printed("84.7/75.8 67.8/65.4 78.1 89.1 56.0 74.0", parameters="499M")),
    ),
    findings=(
        Finding("2H is better than H", "2H", "better", "H"),
        Finding("4H is better than 2H", "4H", "better", "2H"),
        Finding("Beyond 4H it gets worse", "6H", "worse", "4H"),
    ),
)

WIDTHS = (("H", 1), ("2H", 2), ("4H", 4))
BIGGER = Study(
    "bigger",
    "Does an unshared model get worse when it is widened, where a shared one does not (model degradation)?",
    "Section 1 and Table 12's last row",
    rows=(
        *(Row(f"none, {name}", wide(factor) | {"model.sharing": NONE}) for name, factor in WIDTHS),
        *(Row(f"all, {name}", wide(factor) | {"model.sharing": ALL}) for name, factor in WIDTHS),
    ),
    findings=(
        Finding("An unshared model gets worse in the end when it is widened", "none, 4H", "worse", "none, 2H"),
        Finding("A shared one gets better, from 2H to 4H", "all, 4H", "better", "all, 2H"),
        Finding("A shared one gets better, from H to 2H", "all, 2H", "better", "all, H"),
    ),
)

LAST_QUARTER = 0.75
REMOVED = DROPOUT | {"dropout_until": LAST_QUARTER}
DROPOUT_STUDY = Study(
    "dropout",
    "Does a model that does not overfit learn more without dropout, and when it is removed at the end?",
    "Table 8, Figure 2b",
    rows=(
        Row("with dropout", DROPOUT, printed("94.7/89.2 89.6/86.9 90.0 96.3 85.7 90.4", MLM="~71")),
        Row("removed at the end", REMOVED, printed("94.8/89.5 89.9/87.2 90.4 96.5 86.1 90.7", MLM="~72")),
        Row("without dropout"),
    ),
    findings=(
        Finding(
            "Removing dropout at the end helps",
            "removed at the end",
            "better",
            "with dropout",
            ("mlm_accuracy", "mlm_loss", "sst-2", "mnli"),
        ),
        Finding(
            "Dropout hurts masked words", "without dropout", "better", "with dropout", ("mlm_accuracy", "mlm_loss")
        ),
    ),
    curves="valid_mlm_accuracy",
)

TIME = Study(
    "time",
    "In equal time, is a wide ALBERT with fewer steps better than a BERT with more?",
    "Table 6",
    rows=(
        Row(
            "BERT",
            embedding(1, NONE),
            printed("93.5/87.4 86.9/84.3 87.8 94.6 77.3 87.2", steps="400k", hours="34"),
        ),
        Row(
            "ALBERT, 4 x as wide, half as deep",
            wide(4) | {"model.num_hidden_layers": Of("num_hidden_layers", 0.5)},
            printed("94.0/88.1 88.3/85.3 87.8 95.4 82.5 88.7", steps="125k", hours="32"),
        ),
    ),
    findings=(Finding("In equal time ALBERT is better", "ALBERT, 4 x as wide, half as deep", "better", "BERT"),),
    equal="time",
)

DATA = Study(
    "data",
    "What does more text bring, for the same number of tokens read?",
    "Table 7, Figure 2a",
    rows=(
        Row("a tenth of the text", text=0.1, paper=printed("89.3/82.3 80.0/77.1 81.6 90.3 64.0 80.1", MLM="~67-68")),
        Row("all of the text", paper=printed("88.8/81.7 79.1/76.3 82.4 92.8 66.0 80.8", MLM="~69-69.5")),
    ),
    findings=(
        Finding(
            "More text helps",
            "all of the text",
            "better",
            "a tenth of the text",
            ("mlm_accuracy", "mlm_loss", "sst-2", "mnli"),
        ),
    ),
    curves="valid_mlm_accuracy",
)

LAYERS = Study(
    "layers",
    "How far does each layer move its input, with and without sharing?",
    "Figure 1",
    rows=(
        Row("shared", {"model.num_hidden_layers": 12}),
        Row("not shared", {"model.num_hidden_layers": 12, "model.sharing": NONE}),
    ),
    findings=(
        Finding("From layer to layer sharing is smoother", "shared", "better", "not shared", ("roughness",)),
        Finding("… yet it does not converge to a fixed point", "shared", "better", 0.05, ("last_change",)),
    ),
    columns=(*INTRINSIC, "roughness", "last_change", *COST),
    tasks=False,
    layers=True,
)

BERT = embedding(1, NONE)
SPEED = Study(
    "speed",
    "How much faster is training, and what does it send, when parameters are shared?",
    "Table 2, last column",
    rows=(
        Row("ALBERT, 1 process", processes=1),
        Row("BERT, 1 process", BERT, processes=1),
        Row("ALBERT, 2 processes", processes=2, paper={"speed-up (large)": "1.7x", "speed-up (base)": "5.6x"}),
        Row("BERT, 2 processes", BERT, processes=2, paper={"speed-up (large)": "1.0", "speed-up (base)": "4.7x"}),
    ),
    findings=(
        Finding(
            "ALBERT trains faster than the BERT of its shape",
            "ALBERT, 2 processes",
            "better",
            "BERT, 2 processes",
            ("tokens_per_second", "reduced_bytes", "memory"),
        ),
    ),
    columns=("parameters", "tokens_per_second", "memory", "reduced_bytes", "minutes"),
    tasks=False,
)

RECIPE, *OTHERS = BEYOND
IN_ORDER = (SENTENCE_ORDER, SHARING, EMBEDDING, RECIPE, DEPTH, WIDTH, BIGGER, DROPOUT_STUDY, TIME, DATA, LAYERS, SPEED)
STUDIES: dict[str, Study] = {study.name: study for study in (*IN_ORDER, *OTHERS)}

"""Studies that the paper does not have, in its manner: the recipe's tricks, masking, optimizers, relaxed sharing.

What they are expected to show is from other papers or from docs/lab_log.md, and said so.
"""

from __future__ import annotations

from albert.study.tables import Finding, Of, Row, Study

FULL = "all of them"
RECIPE = Study(
    "recipe",
    "Which tricks of the recipe matter? Each is taken away in turn.",
    "not in the paper",
    base={"data.overlap": 0.5},
    rows=(
        Row(FULL),
        Row("words not from PPMI", {"model_init.words": "random"}),
        Row("positions not sinusoidal", {"model_init.positions": "random"}),
        Row("no short texts first", {"grow.length": []}),
        Row("no overlap", {"data.overlap": 0.0}),
        Row("15% masked, not 25%", {"data.mask_prob": 0.15}),
        Row("LAMB, not Muon", {"optimizer.name": "lamb"}),
    ),
    findings=(
        Finding("Words that start from PPMI help (docs/lab_log.md)", FULL, "better", "words not from PPMI"),
        Finding(
            "Sinusoidal positions help (docs/lab_log.md: not separated)", FULL, "better", "positions not sinusoidal"
        ),
        Finding("Short texts first help (docs/lab_log.md)", FULL, "better", "no short texts first"),
        Finding("Overlap helps to compare texts (docs/lab_log.md)", FULL, "better", "no overlap", ("mnli",)),
        Finding("25% masked are better in a short run (docs/lab_log.md)", FULL, "better", "15% masked, not 25%"),
        Finding("Muon is better in a short run (docs/lab_log.md)", FULL, "better", "LAMB, not Muon"),
    ),
)

MASKING = Study(
    "masking",
    "How much should be masked, and in words or in n-grams?",
    "not in the paper, which masks 15% in n-grams of up to 3 words",
    rows=(
        Row("15%, n-grams", {"data.mask_prob": 0.15}),
        Row("15%, words", {"data.mask_prob": 0.15, "data.max_ngram": 1}),
        Row("25%, n-grams", {"data.mask_prob": 0.25}),
        Row("40%, n-grams", {"data.mask_prob": 0.4}),
        Row("40%, words", {"data.mask_prob": 0.4, "data.max_ngram": 1}),
    ),
    findings=(
        Finding("40% beat 15% (Wettig et al. 2022, of large models)", "40%, words", "better", "15%, words"),
        Finding("Masked n-grams teach more than words", "15%, n-grams", "better", "15%, words", ("sst-2", "mnli")),
    ),
)

OPTIMIZER = Study(
    "optimizer",
    "Which optimizer, each at its own rate?",
    "not in the paper, which uses LAMB",
    rows=(
        Row("LAMB", {"optimizer.name": "lamb"}),
        Row("AdamW", {"optimizer.name": "adamw"}),
        Row("Muon", {"optimizer.name": "muon"}),
    ),
    findings=(Finding("AdamW matches LAMB where both are tuned (Nado et al. 2021)", "AdamW", "same", "LAMB"),),
)

NORMS, ADAPTERS = {"model.norm_per_depth": True}, {"model.adapter_rank": Of("hidden_size", 1 / 16)}
GROWTH = {"grow.depth": [[0.0, Of("num_hidden_layers", 0.5)], [0.4, Of("num_hidden_layers", 1)]]}
RELAXED = Study(
    "relaxed",
    "What does a little freedom for each depth bring to a shared layer?",
    "not in the paper; relaxed recursion is Bae et al. 2024",
    rows=(
        Row("shared"),
        Row("norms per depth", NORMS),
        Row("adapters per depth", ADAPTERS),
        Row("norms and adapters", NORMS | ADAPTERS),
        Row("norms and adapters, depth grows", NORMS | ADAPTERS | GROWTH),
        Row("norms and adapters, two groups", NORMS | ADAPTERS | {"model.num_hidden_groups": 2}),
        Row("two groups", {"model.num_hidden_groups": 2}),
        Row("not shared", {"model.sharing": "none"}),
    ),
    findings=(
        Finding("Norms of their own help", "norms per depth", "better", "shared"),
        Finding("Adapters of their own help", "adapters per depth", "better", "shared"),
        Finding("More groups help (the paper, without numbers)", "two groups", "better", "shared"),
    ),
)

BEYOND = (RECIPE, MASKING, OPTIMIZER, RELAXED)

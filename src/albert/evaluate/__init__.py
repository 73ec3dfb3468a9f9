"""Evaluation: the scores of a model on data it did not learn from, and what to compare them with.

`evaluate_pretraining` is for a pre-trained model and a token store, `evaluate_task` for a tuned one and labelled data.
Both return what they found and print nothing.
"""

from albert.evaluate.exits import ExitCurve, draw_exits, exit_curve
from albert.evaluate.pretrained import EvaluationPlan, PretrainingScores, Scores, evaluate_pretraining
from albert.evaluate.tuned import TaskPlan, TaskScores, evaluate_task

__all__ = [
    "EvaluationPlan",
    "ExitCurve",
    "PretrainingScores",
    "Scores",
    "TaskPlan",
    "TaskScores",
    "draw_exits",
    "evaluate_pretraining",
    "evaluate_task",
    "exit_curve",
]

"""The scores of a trained model, and what to compare them with."""

from albert.evaluate.pretrained import EvaluationPlan, PretrainingScores, Scores, evaluate_pretraining

__all__ = ["EvaluationPlan", "PretrainingScores", "Scores", "evaluate_pretraining"]

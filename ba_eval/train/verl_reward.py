"""The evaluation's math grader as a reward function of verl.

reward.custom_reward_function.path=pkg://ba_eval.train.verl_reward
"""

from typing import Any

from ba_eval.grade.math import grade


def compute_score(
    data_source: str, solution_str: str, ground_truth: Any, extra_info: Any = None, **_: Any
) -> dict[str, float]:
    """Returns verl's score of a response: 1 for `correct`, else 0, and the share of verdicts that are undecided.

    `ground_truth` is one accepted answer or a list of them. verl does not say whether a response was cut: an answer
    in a closed box counts either way. Raises RuntimeError where the grader itself failed: that is no score.
    """
    golds = [ground_truth] if isinstance(ground_truth, str) else [str(gold) for gold in ground_truth]
    verdict = grade(golds, solution_str)
    if verdict.outcome == "error":
        raise RuntimeError(f"the grader failed: {verdict.reason}")
    right = float(verdict.outcome == "correct")
    return {"score": right, "acc": right, "undecided": float(verdict.outcome == "undecided")}

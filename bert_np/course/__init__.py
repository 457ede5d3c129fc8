"""The helpers of the course: exercises that check themselves, hints and a lab."""

from bert_np.course.checker import check, hint, show_case, show_solution, working
from bert_np.course.environment import check_environment
from bert_np.course.grading import grade
from bert_np.course.lab import broken_bert
from bert_np.course.my_bert import load_my_bert, progress
from bert_np.course.predictions import predict
from bert_np.course.source import show_source

__all__ = [
    "broken_bert",
    "check",
    "check_environment",
    "grade",
    "hint",
    "load_my_bert",
    "predict",
    "progress",
    "show_case",
    "show_solution",
    "show_source",
    "working",
]

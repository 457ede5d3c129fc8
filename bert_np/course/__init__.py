"""The helpers of the course: exercises that check themselves, hints and a lab."""

from bert_np.course.checker import check, grade, hint, show_case, show_solution
from bert_np.course.environment import check_environment
from bert_np.course.lab import broken_bert
from bert_np.course.source import show_source

__all__ = [
    "broken_bert",
    "check",
    "check_environment",
    "grade",
    "hint",
    "show_case",
    "show_solution",
    "show_source",
]

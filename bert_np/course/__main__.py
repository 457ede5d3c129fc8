"""For teachers: python -m bert_np.course student FOLDER, or answers FILE"""

import argparse
import sys

from bert_np.course.answer_key import write_answers
from bert_np.course.copies import missing_neighbours, write_copies
from bert_np.errors import BertError


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bert_np.course")
    commands = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    text = "write the students' copies of the notebooks, without outputs and answers"
    student = commands.add_parser("student", help=text, description=text)
    student.add_argument("place", metavar="FOLDER", help="the folder to make")
    text = "write the answers to all predictions and exercises into one file"
    answers = commands.add_parser("answers", help=text, description=text)
    answers.add_argument("place", metavar="FILE", help="the file to make")
    given = parser.parse_args(arguments)
    try:
        {"student": make_copies, "answers": make_key}[given.command](given.place)
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def make_copies(place):
    """Write the students' copies, and say which files they lack there."""
    folder = write_copies(place)
    count = len(list(folder.glob("*.ipynb")))
    print(f"{folder}: {count} notebooks")
    missing = missing_neighbours(folder)
    if missing:
        print(f"They need {missing[0]} and more, which they do not find from there:")
        print("choose a folder beside notebooks/, in the project's folder.")


def make_key(place):
    """Write the teacher's key."""
    path = write_answers(place)
    print(f"{path}: {path.stat().st_size / 1000:.0f} kB of Markdown")


if __name__ == "__main__":
    sys.exit(main())

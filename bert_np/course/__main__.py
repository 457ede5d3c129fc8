"""The students' copies: python -m bert_np.course student FOLDER"""

import argparse
import sys

from bert_np.course.copies import missing_neighbours, write_copies
from bert_np.errors import BertError


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m bert_np.course")
    commands = parser.add_subparsers(required=True, metavar="student")
    text = "write the students' copies of the notebooks, without outputs and answers"
    student = commands.add_parser("student", help=text, description=text)
    student.add_argument("folder", metavar="FOLDER", help="the folder to make")
    try:
        folder = write_copies(parser.parse_args(arguments).folder)
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    count = len(list(folder.glob("*.ipynb")))
    print(f"{folder}: {count} notebooks")
    missing = missing_neighbours(folder)
    if missing:
        print(f"They read {missing[0]} and more, which is not there:")
        print("choose a folder beside notebooks/, in the project's folder.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

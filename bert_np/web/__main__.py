"""Write the live page: python -m bert_np.web OUT.html"""

import argparse
import sys

from bert_np.errors import BertError
from bert_np.web.page import save_page


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bert_np.web",
        description="Write a page that runs a BERT in the browser, without a network.",
    )
    parser.add_argument("path", metavar="OUT.html", help="the file to write")
    parser.add_argument(
        "--model",
        default="toy",
        help="the model inside: a name or a folder (default: the toy)",
    )
    options = parser.parse_args(arguments)
    try:
        path = save_page(options.path, options.model)
    except BertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, open it in a browser")
    return 0


if __name__ == "__main__":
    sys.exit(main())

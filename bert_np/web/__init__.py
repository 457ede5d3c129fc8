"""The live page: BERT in a browser, in one file that needs nothing else."""

from bert_np.web.page import build_page, save_page

__all__ = ["build_page", "save_page"]

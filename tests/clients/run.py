"""run.py FOLDER SCRIPT: runs SCRIPT with the packages in FOLDER, whose .pth files count (PYTHONPATH would leave them out)."""
import runpy
import site
import sys

folder, script = sys.argv[1:3]
site.addsitedir(folder)
sys.argv = [script]
runpy.run_path(script, run_name="__main__")

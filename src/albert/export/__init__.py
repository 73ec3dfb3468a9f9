"""Exports: a model in other programs' formats, each run against torch on real texts before it is called done."""

/* SPDX-License-Identifier: Apache-2.0 */
/* What the path of a Python source file says by itself. Pure. */
#pragma once

#include "base/buf.h"

enum python_path_kind {
	PYTHON_PATH_OTHER,    /* a script or a program's own package, or no file at all */
	PYTHON_PATH_SITE,     /* below site-packages or dist-packages */
	PYTHON_PATH_STANDARD, /* below /pythonX.Y/ */
	PYTHON_PATH_ARCHIVE,  /* inside of an archive on the import path: "/srv/pyspark.zip/pyspark/worker.py" */
	PYTHON_PATH_FROZEN,   /* "<frozen os>" */
};

struct python_path {
	enum python_path_kind kind;
	struct str root;    /* SITE, STANDARD, ARCHIVE: the folder or file, without a slash behind it */
	struct str inside;  /* the path below it; FROZEN: the module's name; OTHER: the file's name */
	struct str release; /* STANDARD: "3.11" of "/usr/lib/python3.11/os.py" */
};

/** python_path_parse - borrowed from @file. */
void python_path_parse(struct str file, struct python_path *out);

/**
 * python_path_module - append the import path of a file: "json.decoder" of "json/decoder.py", "json" of
 * "json/__init__.py" Return: false, and nothing appended, when no import statement leads there.
 */
bool python_path_module(struct str inside, struct buf *out);

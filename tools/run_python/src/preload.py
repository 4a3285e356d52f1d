"""The modules that scripts can import: those that are imported here, and what they import themselves.

Much of the standard library imports other modules only when a function is called. At that time there is
nothing to import from, so these are imported here too, or what they are for is done once.
"""

import abc
import argparse
import array
import ast
import base64
import binascii
import bisect
import calendar
import cmath
import codecs
import collections
import collections.abc
import configparser
import contextlib
import contextvars
import copy
import csv
import dataclasses
import datetime
import decimal
import difflib
import enum
import fnmatch
import fractions
import functools
import gc
import graphlib
import gzip
import hashlib
import heapq
import hmac
import html
import html.parser
import importlib
import inspect
import io
import ipaddress
import itertools
import json
import logging
import math
import numbers
import operator
import os
import os.path
import pathlib
import pickle
import pprint
import queue
import random
import re
import reprlib
import secrets
import shlex
import statistics
import string
import struct
import sys
import textwrap
import time
import timeit
import tomllib
import traceback
import types
import typing
import unicodedata
import urllib.parse
import uuid
import warnings
import weakref
import xml.etree.ElementTree
import zipfile
import zlib
import zoneinfo

from zones import ZONES

# Names of what was imported above, for whoever asks; parts of packages by their whole names.
NAMES = sorted(
    {name for name, value in globals().items() if isinstance(value, types.ModuleType) and name != "xml"}
    - {"html", "importlib", "urllib"}
    | {"collections.abc", "html", "html.parser", "os.path", "urllib.parse", "xml.etree.ElementTree"}
)

# Modules that those above import when one of their functions is called: `ast.unparse`, what a traceback
# suggests, great numbers as text, the width of a terminal in `argparse`, the origin of a warning.
LATER = ("_ast_unparse", "_pylong", "_suggestions", "_sysconfig", "shutil", "tracemalloc", "xml.parsers.expat")

# Encodings are modules as well. Others than these are an unknown encoding.
ENCODINGS = (
    "ascii", "base64", "cp1250", "cp1251", "cp1252", "cp437", "cp850", "hex", "idna", "iso8859-1", "iso8859-15",
    "iso8859-2", "koi8-r", "mac-roman", "punycode", "quopri", "raw-unicode-escape", "rot13", "unicode-escape", "utf-16",
    "utf-16-be", "utf-16-le", "utf-32", "utf-32-be", "utf-32-le", "utf-7", "utf-8", "utf-8-sig", "zlib",
)


def zone(key):
    """The data of a time zone, which is in no file here."""
    if key not in ZONES:
        raise zoneinfo.ZoneInfoNotFoundError(f"there is no time zone {key!r}")
    return io.BytesIO(ZONES[key])


def settle():
    """Before the memory is taken: does once what would be done in every store."""
    for name in LATER:
        importlib.import_module(name)
    for name in ENCODINGS:
        codecs.lookup(name)
    zoneinfo._common.load_tzdata = zone
    zoneinfo.available_timezones = zoneinfo._tzpath.available_timezones = lambda: set(ZONES)
    zoneinfo.reset_tzpath(())
    time.strptime("2026", "%Y")
    decimal.Decimal("1.1") * 2


def reseed():
    """Random numbers follow from the host's seed: the module's own was taken when the component was built."""
    random.seed(int.from_bytes(os.urandom(16), "little"))

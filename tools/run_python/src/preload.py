"""The modules that scripts can import: those that are imported here, and what they import themselves."""

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
import contextlib
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
import hashlib
import heapq
import hmac
import html
import html.parser
import inspect
import io
import itertools
import json
import logging
import math
import numbers
import operator
import os
import os.path
import pathlib
import pprint
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
import zlib
import zoneinfo

# Names of what was imported above, for whoever asks; parts of packages by their whole names.
NAMES = sorted(
    {name for name, value in globals().items() if isinstance(value, types.ModuleType) and name != "xml"}
    - {"html", "urllib"}
    | {"collections.abc", "html", "html.parser", "os.path", "urllib.parse", "xml.etree.ElementTree"}
)


def settle():
    """Before the memory is taken: what is garbage now would be garbage in every store."""
    time.strptime("2026", "%Y")
    decimal.Decimal("1.1") * 2
    gc.collect()


def reseed():
    """Random numbers follow from the host's seed: the module's own was taken when the component was built."""
    random.seed(int.from_bytes(os.urandom(16), "little"))

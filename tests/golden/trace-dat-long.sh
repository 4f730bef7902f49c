# SPDX-License-Identifier: BSD-3-Clause
# A thousand random recordings against the model of couplebreak, and damaged ones.
exec python3 "${LOCUS_SRCDIR:?run the tests through make check or ./dev test}/tests/golden/trace-dat.py" --long

# SPDX-License-Identifier: Apache-2.0
"""The parts of bench/warm.py, one topic each."""

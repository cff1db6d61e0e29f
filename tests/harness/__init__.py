# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end and attack suites share: the product, the witness, controls, scenarios."""

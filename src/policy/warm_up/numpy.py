# SPDX-License-Identifier: Apache-2.0
# What a cell of the template "numpy" shall not do for the first time.
import numpy as np

numbers = np.random.default_rng(0)
matrix = numbers.random((100, 100))
for kind in (np.float64, np.float32, np.complex128, np.int64):
    square = (matrix * 9).astype(kind)
    square @ square
    square.sum(axis=0), square.mean(), square.max(), square.std(), square * 2 + square.T
    square[square > 3], np.sort(square, axis=1), np.unique(square), np.where(square > 1, 0, square)
    repr(square), str(square[:3, :3])
square = matrix @ matrix.T + np.eye(100)
np.linalg.solve(square, matrix), np.linalg.inv(square), np.linalg.det(square)
np.linalg.eigh(square), np.linalg.eigvals(square[:20, :20]), np.linalg.svd(matrix[:20])
np.linalg.norm(matrix), np.linalg.qr(matrix[:20]), np.linalg.lstsq(square, matrix, rcond=None)
np.dot(matrix[0], matrix[1]), np.einsum("ij,jk", matrix, matrix), np.fft.fft(matrix[0])
np.exp(matrix), np.log(matrix + 1), np.sqrt(matrix), np.sin(matrix), np.tanh(matrix), matrix ** 2
np.cumsum(matrix, axis=0), np.percentile(matrix, [5, 50]), np.median(matrix), np.argsort(matrix[0])
np.linspace(0, 1, 50), np.arange(24).reshape(2, 3, 4), np.concatenate([matrix, matrix])
np.polyfit(np.arange(9), np.arange(9.0) ** 2, 2), np.histogram(matrix, bins=10), np.array([[1, 2], [3, 4.5]])
np.array(["a", "bc"]), np.isnan(matrix).any(), np.allclose(matrix, matrix), np.corrcoef(matrix[:3])
np.random.seed(0)
np.random.rand(3), np.random.randn(3), np.random.randint(0, 9, 3), np.random.choice([1, 2, 3])
numbers.normal(size=3), numbers.integers(0, 9, 3), numbers.permutation(5)

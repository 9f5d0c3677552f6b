-- SPDX-License-Identifier: MIT
COMMIT

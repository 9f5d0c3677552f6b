-- SPDX-License-Identifier: MIT
SELECT value FROM meta WHERE key = :key

-- SPDX-License-Identifier: MIT
UPDATE attempts SET nodes = :nodes WHERE id = :id

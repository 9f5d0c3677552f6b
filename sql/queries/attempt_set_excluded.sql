-- SPDX-License-Identifier: MIT
UPDATE attempts SET excluded = :excluded WHERE id = :id

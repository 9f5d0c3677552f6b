-- SPDX-License-Identifier: MIT
DELETE FROM attempts WHERE id = :id AND is_spare = 1

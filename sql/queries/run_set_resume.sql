-- SPDX-License-Identifier: MIT
UPDATE runs SET resume_from = :resume_from WHERE id = :id

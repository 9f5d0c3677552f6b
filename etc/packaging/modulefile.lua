-- SPDX-License-Identifier: MIT
-- Lmod: module use FOLDER/share/modulefiles; module load lowbits. FOLDER is found from where this file lies,
-- share/modulefiles/lowbits/VERSION.lua, and so may be moved.
local version = myModuleVersion()
local root = myFileName():gsub("/share/modulefiles/.*$", "")

whatis("Name: lowbits")
whatis("Version: " .. version)
whatis("Description: keeps language-model training alive on a Slurm cluster")
help([[
lbctl daemon start, then lbctl submit: see man lbctl.
]])
conflict("lowbits")
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("MANPATH", pathJoin(root, "share/man"))
prepend_path("XDG_DATA_DIRS", pathJoin(root, "share"))

# SPDX-License-Identifier: MIT
# --- install --------------------------------------------------------------------------------
# Man pages are written in scdoc; where it is missing they are left out, and said so.
MAN      := $(if $(shell command -v scdoc),$(patsubst docs/man/%.scd,$(B)/man/%,$(wildcard docs/man/*.scd)))
SHARE    := $(DESTDIR)$(PREFIX)/share

man: $(MAN)
ifeq ($(MAN),)
	@echo "note: scdoc not found: the man pages are left out"
endif
$(B)/man/%: docs/man/%.scd
	@mkdir -p $(@D)
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)} scdoc <$< >$@.tmp && mv $@.tmp $@

# The library for every GPU from Ampere on; install takes it where it was made (some minutes).
release: $(if $(HAVE_CUDA),$(B)/release/liblbcuda.so)
	@for l in $^; do sh tests/gpu/code.sh $$l; done

# Built in a Debian 11 root, which is made where there is none: root and a network, once.
.PHONY: tarball deb rpm
tarball:
	etc/packaging/tarball $(VERSION) $(or $(ROOTS),$(B)/roots)/bullseye $(B)
# The same files: built anew for Debian 12 and 13, the tarball's own as RPM.
deb:
	etc/packaging/deb $(VERSION) $(or $(ROOTS),$(B)/roots) $(B)/deb $(SUITES)
rpm:
	etc/packaging/rpm $(VERSION) $(or $(ROOTS),$(B)/roots) $(B)

EXAMPLES := network:$(SHARE)/lowbits/network train:$(SHARE)/doc/lowbits/train cron:$(SHARE)/doc/lowbits/cron grafana:$(SHARE)/doc/lowbits/grafana
DOCUMENTS := README.md CHANGELOG.md LICENSE NOTICE $(wildcard LICENSES/*) etc/lbd.toml docs/top.svg $(wildcard docs/*.py) \
	    $(addprefix docs/,$(addsuffix .md,ARCHITECTURE CHECKPOINTS GOODPUT INSTALL LOW-BITS PROTOCOL RANKS))

.PHONY: absolute-prefix install uninstall
absolute-prefix:
	@case '$(PREFIX)' in /*) ;; *) echo "PREFIX=$(PREFIX): must begin with / or ~/" >&2; exit 2 ;; esac
	@case '$(DESTDIR)$(PREFIX)' in *' '*) echo "$(DESTDIR)$(PREFIX): must hold no blank" >&2; exit 2 ;; esac

install: absolute-prefix all man
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/systemd/user $(SHARE)/doc/lowbits \
		$(SHARE)/man/man1 $(SHARE)/man/man5 $(SHARE)/man/man8 \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/fish/vendor_completions.d
	install -m 755 $(BINARIES) $(DESTDIR)$(PREFIX)/bin
	for l in $(firstword $(wildcard $(B)/release/liblbcuda.so) $(LBCUDA)) $(LBMPI); do \
		install -d $(DESTDIR)$(PREFIX)/lib/lowbits && \
		install -m 755 $$l $(DESTDIR)$(PREFIX)/lib/lowbits || exit 1; done
	for m in $(MAN); do \
		install -m 644 $$m $(SHARE)/man/man$${m##*.}/ || exit 1; done
	for c in etc/completions/*; do case $$c in \
		*.bash) install -m 644 $$c $(SHARE)/bash-completion/completions/lbctl ;; \
		*.fish) install -m 644 $$c $(SHARE)/fish/vendor_completions.d/ ;; \
		*/_*) install -m 644 $$c $(SHARE)/zsh/site-functions/ ;; \
		esac || exit 1; done
	sed 's,@BINDIR@,$(PREFIX)/bin,' etc/lbd.service >$(SHARE)/systemd/user/lbd.service
	install -m 644 $(DOCUMENTS) $(SHARE)/doc/lowbits
	for e in $(EXAMPLES); do \
		install -d $${e#*:} && for f in etc/$${e%%:*}/*; do \
			case $$f in *.sh) mode=755 ;; *) mode=644 ;; esac; \
			install -m $$mode $$f $${e#*:} || exit 1; done || exit 1; done
	install -m 755 etc/notify $(SHARE)/doc/lowbits

# What install put there, and folders that are empty then. $$LB_HOME is never touched.
uninstall: absolute-prefix
	for p in lbd lbctl lbrun lbworker lbd-slurm lbd-slurm-commands; do rm -f $(DESTDIR)$(PREFIX)/bin/$$p || exit 1; done
	rm -f $(DESTDIR)$(PREFIX)/lib/lowbits/liblbcuda.so $(DESTDIR)$(PREFIX)/lib/lowbits/liblbmpi.so $(SHARE)/systemd/user/lbd.service \
		$(SHARE)/bash-completion/completions/lbctl $(SHARE)/zsh/site-functions/_lbctl \
		$(SHARE)/fish/vendor_completions.d/lbctl.fish
	for m in docs/man/*.scd; do m=$${m##*/}; m=$${m%.scd}; rm -f $(SHARE)/man/man$${m##*.}/$$m || exit 1; done
	for d in $(DOCUMENTS) notify; do rm -f $(SHARE)/doc/lowbits/$${d##*/} || exit 1; done
	for e in $(EXAMPLES); do for f in etc/$${e%%:*}/*; do rm -f $${e#*:}/$${f##*/} || exit 1; done; done
	-@find $(DESTDIR)$(PREFIX)/lib/lowbits $(SHARE)/lowbits $(SHARE)/doc/lowbits -depth -type d -empty \
		-delete 2>/dev/null; true

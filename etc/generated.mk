# SPDX-License-Identifier: MIT
# --- files that become arrays, and tables of words -----------------------------------------------
# The bytes of a file and a 0, as an array of that name.
embed     = $(call say,EMBED) { echo 'static const char $(1)[] = {'; \
		od -An -v -td1 $< | sed 's/-\{0,1\}[0-9]\{1,\}/&,/g'; echo '0};'; } >$@.tmp && mv $@.tmp $@
$(SQL): $(B)/gen/queries.h
$(B)/gen/queries.h: sql/embed.sh $(wildcard sql/queries/*.sql sql/schema/*.sql)
	@mkdir -p $(@D)
	$(call say,EMBED) sh sql/embed.sh $(filter %.sql,$^) >$@.tmp && mv $@.tmp $@
# In a folder of its own: cppcheck would read its quarter of a million numbers for minutes.
$(B)/obj/ctl/top/source.o: $(B)/demo/top_demo.h
$(B)/obj/ctl/top/source.o: CPPFLAGS += -I$(B)/demo
$(B)/demo/top_demo.h: ctl/top/demo.jsonl
	@mkdir -p $(@D)
	$(call embed,top_demo)
$(B)/obj/ctl/sync/sync.o: $(B)/gen/trackers.h
$(B)/obj/ctl/act/requests.o: $(B)/gen/hang.h
$(B)/gen/trackers.h: ctl/sync/trackers.py
$(B)/gen/hang.h: ctl/act/hang.py
$(B)/gen/trackers.h $(B)/gen/hang.h:
	@mkdir -p $(@D)
	$(call embed,$(basename $(@F))_text)
$(COMMON): $(B)/gen/words.h
$(B)/gen/words.h: common/base/words.sh common/base/words.txt
	@mkdir -p $(@D)
	$(call say,WORDS) sh common/base/words.sh common/base/words.txt >$@.tmp && mv $@.tmp $@

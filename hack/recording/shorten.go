// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// Times of the picture, in seconds.
const (
	typed   = 1.0  // until the command was typed
	idle    = 1.0  // the longest pause that is kept, in real time
	longest = 15.0 // until the cluster is available: longer is played faster
	frame   = 0.35 // between two frames
	shown   = 7.0  // the end, before Ctrl-C
	goodbye = 2.0  // the last frame
	prompt  = "$ "
	command = "make quickstart"
	topLeft = "\x1b[H"
)

// shorten makes a recording in real time one that can be watched: a command that is typed, what happened as fast as
// it can be followed with a bounded number of frames, and the end for long enough to read it.
func shorten(events []event) []event {
	up, down := split(events)
	short := []event{{0, prompt}, {typed / 2, command}, {typed, "\r\n"}}
	short = append(short, frames(faster(cutPauses(up)), typed+frame)...)
	short = append(short, frames(cutPauses(down), short[len(short)-1].at+shown)...)
	// The renderer shows a frame until the next one: this one is never seen, and differs by the cursor alone.
	return append(short, event{short[len(short)-1].at + goodbye, topLeft})
}

// split cuts where the quickstart begins to wait.
func split(events []event) (up, down []event) {
	for i, e := range events {
		if strings.Contains(e.data, waiting) {
			return events[:i+1], events[i+1:]
		}
	}
	return events, nil
}

// cutPauses starts at 0 and leaves no pause longer than idle.
func cutPauses(events []event) []event {
	cut := make([]event, len(events))
	at := 0.0
	for i, e := range events {
		if i > 0 {
			at += min(e.at-events[i-1].at, idle)
		}
		cut[i] = event{at, e.data}
	}
	return cut
}

// faster scales times so that the last one is longest at most.
func faster(events []event) []event {
	if len(events) == 0 || events[len(events)-1].at <= longest {
		return events
	}
	factor := longest / events[len(events)-1].at
	scaled := make([]event, len(events))
	for i, e := range events {
		scaled[i] = event{e.at * factor, e.data}
	}
	return scaled
}

// frames joins what happens within the time of one frame, and starts at begin.
func frames(events []event, begin float64) []event {
	var joined []event
	last := -1
	for _, e := range events {
		number := int(e.at / frame)
		if number == last {
			joined[len(joined)-1].data += e.data
			continue
		}
		joined = append(joined, event{begin + float64(number)*frame, e.data})
		last = number
	}
	return joined
}

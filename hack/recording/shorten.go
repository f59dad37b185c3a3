// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// Times in the picture, in seconds.
const (
	typed   = 1.0  // time until the command is typed
	idle    = 1.0  // maximum pause, in real time
	longest = 15.0 // maximum time until the cluster is available; a longer one is sped up
	frame   = 0.35 // minimum time between two frames
	shown   = 7.0  // time of the last lines before Ctrl-C
	goodbye = 2.0  // time of the last frame
	prompt  = "$ "
	command = "make quickstart"
	topLeft = "\x1b[H"
)

// shorten turns a recording in real time into one that is short enough to watch. It types the command, plays the events
// with bounded speed and a bounded number of frames, and shows the end long enough to read it.
func shorten(events []event) []event {
	up, down := split(events)
	short := []event{{0, prompt}, {typed / 2, command}, {typed, "\r\n"}}
	short = append(short, frames(faster(cutPauses(up)), typed+frame)...)
	short = append(short, frames(cutPauses(down), short[len(short)-1].at+shown)...)
	// The renderer shows each frame until the next one. This last frame is never visible and differs only in the
	// cursor.
	return append(short, event{short[len(short)-1].at + goodbye, topLeft})
}

// split splits the events at the point where the quickstart starts to wait.
func split(events []event) (up, down []event) {
	for i, e := range events {
		if strings.Contains(e.data, waiting) {
			return events[:i+1], events[i+1:]
		}
	}
	return events, nil
}

// cutPauses shifts the events to start at 0 and shortens pauses to at most idle.
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

// faster scales the times so that the last one is at most longest.
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

// frames joins the events within the time of one frame, and starts at begin.
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

// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// hours returns a recording with long pauses, many small writes, and the end of the quickstart.
func hours() []event {
	events := []event{{0, "[   0s] Building\r\n"}}
	for i := range 1000 {
		events = append(events, event{100 + float64(i)/4, "\x1b[1A\r\x1b[Kelapsed\n"})
	}
	return append(events, event{4000, "\r\n" + waiting + "\r\n"}, event{4009, "\r\nTaking everything down.\r\n"})
}

func TestAnHourOfRecordingIsShortenedToHalfAMinute(t *testing.T) {
	g := NewWithT(t)
	short := shorten(hours())

	g.Expect(short[len(short)-1].at).To(And(BeNumerically(">=", 20), BeNumerically("<=", 30)))
	g.Expect(len(short)).To(BeNumerically("<", 60), "frames")
	for i := range short[1:] {
		g.Expect(short[i+1].at).To(BeNumerically(">", short[i].at))
	}
}

func TestAllOutputIsKept(t *testing.T) {
	g := NewWithT(t)
	var before, after strings.Builder
	for _, e := range hours() {
		_, _ = before.WriteString(e.data)
	}
	for _, e := range shorten(hours()) {
		_, _ = after.WriteString(e.data)
	}
	g.Expect(after.String()).To(Equal(prompt + command + "\r\n" + before.String() + topLeft))
}

func TestTheLastFrameIsShownForSevenSeconds(t *testing.T) {
	g := NewWithT(t)
	short := shorten(hours())
	for i, e := range short {
		if strings.Contains(e.data, waiting) {
			g.Expect(short[i+1].at - e.at).To(BeNumerically("~", shown, 0.01))
			return
		}
	}
	t.Error("the last frame is missing")
}

func TestARecordingContainsNoDetailsOfThisMachine(t *testing.T) {
	g := NewWithT(t)
	redacted, err := redact([]event{{1, "source /home/me/.cache/x/env"}}, "/src/tree", "/home/me")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(redacted).To(Equal([]event{{1, "source ~/.cache/x/env"}}))

	_, err = redact([]event{{1, "source /home"}, {2, "/me/env"}}, "/src/tree", "/home/me") // In two writes.
	g.Expect(err).To(MatchError(ContainSubstring("/home/me")))
}

func TestARecordingSurvivesARoundTrip(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "x.cast")
	g.Expect(write(file, hours())).To(Succeed())
	g.Expect(read(file)).To(Equal(hours()))
}

func TestAPictureHasNoTrailingSpaces(t *testing.T) {
	NewWithT(t).Expect(tidy(`<g><g transform="x"><text x="0" xml:space="preserve">a  b   </text></g></g>`)).To(Equal(
		"<g>\n" + `<g transform="x"><text x="0">a  b</text></g></g>` + "\n"))
}

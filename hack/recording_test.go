// SPDX-License-Identifier: Apache-2.0

package hack_test

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// GitHub shows the picture of the quickstart in a page, in light and dark mode, so the image must be self-contained.
func TestTheQuickstartRecordingIsSelfContained(t *testing.T) {
	g := NewWithT(t)
	picture, err := os.ReadFile("../docs/get-started/images/quickstart.svg")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(picture)).To(BeNumerically("<=", 250_000), "bytes")

	var text strings.Builder
	decoder := xml.NewDecoder(strings.NewReader(string(picture)))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		g.Expect(err).NotTo(HaveOccurred())
		switch token := token.(type) {
		case xml.StartElement:
			g.Expect(token.Name.Local).NotTo(BeElementOf("script", "foreignObject", "image", "a"))
			for _, attribute := range token.Attr {
				g.Expect(attribute.Name.Local).NotTo(MatchRegexp("^(on.*|href)$"))
			}
		case xml.CharData:
			_, _ = text.Write(append(token, '\n'))
		}
	}
	g.Expect(text.String()).NotTo(MatchRegexp(`@import|@font-face`), "resources loaded from other sites")
	g.Expect(regexp.MustCompile(`(^|[\s="':,])/[a-z]+/\S*`).FindAllString(text.String(), -1)).To(BeEmpty(),
		"paths of a machine")
	g.Expect(text.String()).To(ContainSubstring("@keyframes"))
}

// The recording shows the current output of the quickstart. It is recorded again when the output changes.
func TestTheRecordingShowsTheEndOfTheQuickstart(t *testing.T) {
	g := NewWithT(t)
	picture, err := os.ReadFile("../docs/get-started/images/quickstart.svg")
	g.Expect(err).NotTo(HaveOccurred())
	shown := map[string]string{
		"clusterctl describe cluster":  "cluster.go",
		"What you can do now":          "cluster.go",
		"Ctrl-C takes everything down": "quickstart.go",
		"Taking everything down":       "quickstart.go",
	}
	for line, file := range shown {
		source, err := os.ReadFile("../test/quickstart/" + file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(source)).To(ContainSubstring(line))
		g.Expect(string(picture)).To(ContainSubstring(line), "run: make recording")
	}
}

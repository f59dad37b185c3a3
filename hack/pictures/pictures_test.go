// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheDrawingsAreUpToDate(t *testing.T) {
	for path, d := range drawings {
		t.Run(path, func(t *testing.T) {
			g := NewWithT(t)
			file, err := os.ReadFile(filepath.Join("../..", path))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(string(file)).To(Equal(d.svg()), "run make generate")

			decoder := xml.NewDecoder(strings.NewReader(d.svg()))
			for err == nil {
				_, err = decoder.Token()
			}
			g.Expect(errors.Is(err, io.EOF)).To(BeTrue(), "%v", err)
		})
	}
}

func TestItemsInAColumnDoNotOverlap(t *testing.T) {
	g := NewWithT(t)
	items := []item{other("a"), down("to"), row{other("b"), part("c", "with a line")}, frame("d", other("e"))}

	var out strings.Builder
	drawStack(&out, items, 0, 0, 100)

	g.Expect(stackHeight(items)).To(Equal(36 + 30 + 52 + gap + 82))
	g.Expect(out.String()).To(ContainSubstring(`<rect class="ours" x="54" y="66" width="46" height="52" rx="6"/>`))
	g.Expect(out.String()).To(ContainSubstring(`<rect class="group" x="0" y="126" width="100" height="82" rx="6"/>`))
}

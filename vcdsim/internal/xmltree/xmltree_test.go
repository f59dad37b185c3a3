// SPDX-License-Identifier: Apache-2.0

package xmltree_test

import (
	"bytes"
	"encoding/xml"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func TestWrittenDocumentsAreRead(t *testing.T) {
	g := NewWithT(t)
	n := xmltree.New("Vm", xmltree.A("name", `a "b" <c>`), xmltree.Opt("left", ""), xmltree.A("vmw:key", 1),
		xmltree.T("ovf:Info", "x & y"), xmltree.OptT("None", ""),
		xmltree.New("List", xmltree.T("Item", true), xmltree.T("Item", false)))
	var b bytes.Buffer
	g.Expect(n.Write(&b)).To(Succeed())

	got, err := xmltree.Parse([]byte(strings.Replace(b.String(), "<Vm ", `<Vm xmlns:ovf="o" xmlns:vmw="v" `, 1)))
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(got.Attr("name")).To(Equal(`a "b" <c>`))
	g.Expect(got.Attr("key")).To(Equal("1"))
	g.Expect(got.Str("Info")).To(Equal("x & y"))
	g.Expect(got.At("List").All("Item")).To(HaveLen(2))
	g.Expect(got.Bool("List", "Item")).To(BeTrue())
	g.Expect(got.At("Nowhere", "Item")).To(BeNil())
	g.Expect(got.At("Nowhere").Attr("x")).To(BeEmpty())
}

func TestBadDocuments(t *testing.T) {
	for _, doc := range []string{"", "text", "<a>", "<a></b>", strings.Repeat("<a>", 100)} {
		_, err := xmltree.Parse([]byte(doc))
		NewWithT(t).Expect(err).To(HaveOccurred())
	}
}

func TestTimes(t *testing.T) {
	const format = "2006-01-02T15:04:05.000Z07:00"
	zone := time.FixedZone("", int((5*time.Hour + 30*time.Minute).Seconds()))
	for _, at := range []time.Time{
		time.Date(2026, time.March, 1, 10, 0, 0, 0, time.UTC),
		time.Date(2026, time.March, 1, 10, 0, 0, 7_999_999, time.UTC),
		time.Date(2026, time.December, 31, 23, 59, 59, 999_999_999, zone),
		{},
	} {
		NewWithT(t).Expect(xmltree.A("at", at).Value).To(Equal(at.Format(format)))
	}
}

func TestReservedCharactersAreEscaped(t *testing.T) {
	for _, text := range []string{"plain", "", `a"b`, "a'b", "a&b", "a<b", "a>b", "a\tb\nc", "é", "a\x00b", "a\x7fb"} {
		var want bytes.Buffer
		NewWithT(t).Expect(xml.EscapeText(&want, []byte(text))).To(Succeed())

		NewWithT(t).Expect(xmltree.New("A", xmltree.A("x", text)).String()).To(Equal(`<A x="` + want.String() + "\"/>\n"))
	}
}

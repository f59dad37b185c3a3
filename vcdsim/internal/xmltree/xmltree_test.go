// SPDX-License-Identifier: Apache-2.0

package xmltree_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

func TestWhatIsWrittenIsRead(t *testing.T) {
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

// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/internal/xmltree"
)

// fullClones turns off fast provisioning, so that disks can grow.
func fullClones(cfg *vcdsim.Config) { cfg.Model.Orgs[1].VDCs[0].FullClones = true }

// sizes returns the sizes of a VM's disks.
func (c *client) sizes(vm string) []int64 {
	var out []int64
	for _, d := range c.state(vm).Disks {
		out = append(out, d.SizeMiB)
	}
	return out
}

// itemOfType returns the last item of a resource type.
func itemOfType(list *xmltree.Node, kind string) *xmltree.Node {
	var out *xmltree.Node
	for _, item := range list.All("Item") {
		if item.Str("ResourceType") == kind {
			out = item
		}
	}
	return out
}

// edited returns a copy of an element, with replacements in its text.
func (c *client) edited(n *xmltree.Node, replace ...string) *xmltree.Node {
	out, err := xmltree.Parse([]byte(strings.NewReplacer(replace...).Replace(n.String())))
	c.Expect(err).NotTo(HaveOccurred())
	return out
}

func TestDisksAreAddedGrownAndRemovedAsItems(t *testing.T) {
	for _, path := range []string{"/virtualHardwareSection/disks", "/virtualHardwareSection"} {
		t.Run(path, func(t *testing.T) {
			c := start(t, fullClones)
			vm := c.vm(c.vapp("cluster"), "node")
			path := vm + path
			first := c.sizes("node")[0]

			list := c.get(path).xml
			added := c.edited(itemOfType(list, "17"), "<InstanceID>2000<", "<InstanceID>2001<", "<AddressOnParent>0<", "<AddressOnParent>4<")
			added.At("HostResource").Attrs = append([]xmltree.Attr{xmltree.A("capacity", 2048), xmltree.A("busSubType", "lsilogic")},
				xmltree.A("storageProfileHref", c.sim.URL()+"/api/vdcStorageProfile/"+c.model().VDCs[0].StorageProfiles[1].ID))
			list.Add(added)
			c.ok(http.MethodPut, path, list.String())
			c.Expect(c.sizes("node")).To(Equal([]int64{first, 2048}))
			disk := c.state("node").Disks[1]
			c.Expect([]any{disk.Unit, disk.Adapter, disk.StorageProfileID}).To(Equal(
				[]any{4, "3", c.model().VDCs[0].StorageProfiles[1].ID}))

			list = c.get(path).xml
			itemOfType(list, "17").At("VirtualQuantity").Text = "4294967296"
			c.ok(http.MethodPut, path, list.String())
			c.Expect(c.sizes("node")).To(Equal([]int64{first, 4096}), "the changed form of the size counts")

			list = c.get(path).xml
			itemOfType(list, "17").At("HostResource").Attrs = []xmltree.Attr{xmltree.A("capacity", 8192)}
			c.ok(http.MethodPut, path, list.String())
			c.Expect(c.sizes("node")).To(Equal([]int64{first, 8192}))

			itemOfType(list, "17").At("HostResource").Attrs = []xmltree.Attr{xmltree.A("capacity", 1024)}
			c.Expect(c.refused(http.MethodPut, path, list.String(), 400, "BAD_REQUEST")).To(ContainSubstring("cannot be reduced"))

			list = c.get(path).xml
			last := itemOfType(list, "17")
			for i, item := range list.Children {
				if item == last {
					list.Children = append(list.Children[:i], list.Children[i+1:]...)
					break
				}
			}
			c.ok(http.MethodPut, path, list.String())
			c.Expect(c.sizes("node")).To(Equal([]int64{first}))
		})
	}
}

func TestAHardwareSectionIsWrittenAsItWasRead(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	c.ok(http.MethodPost, vm+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+disk+`"/></DiskAttachOrDetachParams>`)
	before := c.state("node")

	for _, path := range []string{"", "/disks"} {
		section := c.get(vm + "/virtualHardwareSection" + path).xml
		c.ok(http.MethodPut, vm+"/virtualHardwareSection"+path, section.String())
		c.Expect(c.state("node")).To(Equal(before))
	}

	c.ok(http.MethodPut, vm+"/virtualHardwareSection", hardware(hardwareItem("3", "5", quantity("4"))))
	c.Expect(c.state("node").CPUs).To(Equal(int64(4)))
	c.Expect(c.state("node").Disks).To(Equal(before.Disks), "a section without disks keeps them")
}

func TestHardwareItemsThatAreNotAppliedAreRefused(t *testing.T) {
	c := start(t)
	vm := c.vm(c.vapp("cluster"), "node")
	path := vm + "/virtualHardwareSection"
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	section := c.get(path).xml
	nic := itemOfType(section, "10")
	with := func(n *xmltree.Node) string {
		out := c.edited(section)
		out.Add(n)
		return out.String()
	}

	for name, tt := range map[string]struct{ path, body, message string }{
		"another network adapter": {
			path:    path,
			body:    with(c.edited(nic, "<AddressOnParent>0<", "<AddressOnParent>1<")),
			message: "networkConnectionSection",
		},
		"a network adapter on another network": {
			path:    path,
			body:    strings.Replace(section.String(), ">nodes<", ">storage<", 1),
			message: "networkConnectionSection",
		},
		"an independent disk": {
			path:    path + "/disks",
			body:    `<RasdItemsList>` + hardwareItem("17", "2001", `<rasd:HostResource disk="`+disk+`"/>`) + `</RasdItemsList>`,
			message: "attached",
		},
		"memory as CPUs": {
			path:    path + "/cpu",
			body:    `<Item><ResourceType>4</ResourceType><VirtualQuantity>4096</VirtualQuantity></Item>`,
			message: "resource type",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.WithT = NewWithT(t)
			body := strings.NewReplacer("<ovf:", "<", "</ovf:", "</", "<rasd:", "<", "</rasd:", "</").Replace(tt.body)
			c.Expect(c.refused(http.MethodPut, tt.path, body, 400, "BAD_REQUEST")).To(ContainSubstring(tt.message))
		})
	}
}

func TestMediaAreListedAsItems(t *testing.T) {
	c := start(t).user("admin")
	vm := c.vm(c.vapp("cluster"), "node")
	c.Expect(c.get(vm + "/virtualHardwareSection/media").xml.All("Item")).To(BeEmpty())
	media := c.sim.URL() + c.iso("tools", "0123456789")
	c.ok(http.MethodPost, vm+"/media/action/insertMedia",
		`<MediaInsertOrEjectParams `+xmlns+`><Media href="`+media+`"/></MediaInsertOrEjectParams>`)

	c.Expect(c.get(vm+"/virtualHardwareSection/media").xml.Str("Item", "HostResource")).To(Equal("tools"))
}

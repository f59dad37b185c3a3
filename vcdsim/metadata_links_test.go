// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
)

func TestMetadataIsChangedThroughItsLinks(t *testing.T) {
	c := start(t).user("admin")
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	catalog := c.model().Catalogs[0]
	for _, entity := range []string{
		vapp,
		vm,
		disk,
		"/api/vAppTemplate/vappTemplate-" + catalog.Templates[0].ID,
		"/api/catalogItem/" + catalog.Templates[0].ItemID,
		"/api/admin/vdc/" + c.model().VDCs[0].ID,
		"/api/admin/catalog/" + catalog.ID,
	} {
		t.Run(entity, func(t *testing.T) {
			c.WithT = NewWithT(t)
			metadata := entity + "/metadata"

			c.ok(http.MethodPost, c.linked(c.get(metadata), "add"), `<Metadata `+xmlns+` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">`+
				`<MetadataEntry><Domain visibility="READWRITE">GENERAL</Domain><Key>the key</Key>`+
				`<TypedValue xsi:type="MetadataStringValue"><Value>first</Value></TypedValue></MetadataEntry></Metadata>`)
			for _, value := range []string{metadata + "/the%20key", metadata + "/GENERAL/the%20key"} {
				c.ok(http.MethodPut, c.linked(c.get(value), "edit"), metadataValue)
				c.Expect(c.get(value).xml.Str("TypedValue", "Value")).To(Equal("VALUE"))
			}
			value := metadata + "/GENERAL/the%20key"
			c.ok(http.MethodDelete, c.linked(c.get(value), "remove"), "")

			c.refused(http.MethodGet, value, "", 403, forbiddenCode)
		})
	}
}

func TestViewsOfMetadataHaveNoLinksForChanges(t *testing.T) {
	c := start(t, withOtherOrg).user("admin")
	vdc := c.model().VDCs[0].ID
	c.ok(http.MethodPut, "/api/admin/vdc/"+vdc+"/metadata/key", metadataValue)

	for path, relation := range map[string]string{"": "add", "/key": "remove", "/GENERAL/key": "edit"} {
		c.Expect(c.linked(c.get("/api/vdc/"+vdc+"/metadata"+path), relation)).To(BeEmpty())
		c.Expect(c.linked(c.get("/api/admin/vdc/"+vdc+"/metadata"+path), relation)).NotTo(BeEmpty())
	}

	catalog := c.model().Catalogs[0]
	c.publish("/api/admin/catalog/"+catalog.ID, true)
	template := "/api/vAppTemplate/vappTemplate-" + catalog.Templates[0].ID + "/metadata"
	c.Expect(c.linked(c.get(template), "add")).NotTo(BeEmpty())
	c.Expect(c.linked(c.ofOther("author").get(template), "add")).To(BeEmpty(), "the template belongs to another organization")
}

// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// as continues as another user of the tenant.
func (c *client) as(user string) {
	c.token = c.login(user, "acme", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
}

func (c *client) catalogPath() string { return "/api/catalog/" + c.model().Catalogs[0].ID }

// promise starts the upload of an ISO and returns the address of the media.
func (c *client) promise(name string, size int) string {
	a := c.call(http.MethodPost, c.catalogPath()+"/action/upload",
		fmt.Sprintf(`<Media %s name="%s" imageType="iso" size="%d"/>`, xmlns, name, size))
	c.Expect(a.status).To(Equal(http.StatusCreated), string(a.body))
	return strings.TrimPrefix(a.xml.At("Entity").Attr("href"), c.sim.URL())
}

// send uploads a part of a file to a transfer link, without a session, because the link itself is the permission.
func (c *client) send(link, part string, from, total int) answer {
	req := c.request(http.MethodPut, link, part)
	req.Header.Del("Authorization")
	req.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, from+len(part)-1, total))
	return c.do(req)
}

// iso uploads an ISO in two parts and returns the address of the media.
func (c *client) iso(name, content string) string {
	media := c.promise(name, len(content))
	half := len(content) / 2
	x := c.get(media).xml
	link := x.At("Files", "File", "Link").Attr("href")
	c.Expect(c.send(link, content[:half], 0, len(content)).status).To(Equal(http.StatusOK))
	c.Expect(c.get(media).xml.At("Files", "File").Attr("bytesTransferred")).To(Equal(fmt.Sprint(half)))
	c.Expect(c.get(x.At("Tasks", "Task").Attr("href")).xml.Attr("status")).To(Equal("running"),
		"half of the bytes have arrived")
	c.Expect(c.send(link, content[half:], half, len(content)).status).To(Equal(http.StatusOK))
	c.Expect(c.finish(x.At("Tasks", "Task")).Attr("status")).To(Equal("success"))
	return media
}

func TestMediaIsUploadedInPartsAndDownloaded(t *testing.T) {
	c := start(t, manual)
	c.as("admin")
	media := c.iso("tools", "0123456789")
	c.Expect(c.get(media).xml.Attr("status")).To(Equal("1"))
	c.Expect(c.get(media).xml.At("Files")).To(BeNil())
	c.Expect(c.records("type=media&filter=name==tools;status==RESOLVED")).To(HaveLen(1))
	c.Expect(c.records("type=catalogItem&filter=entityType==media")).To(HaveLen(1))

	c.ok(http.MethodPost, media+"/action/enableDownload", "")
	link := c.get(media).xml.At("Files", "File", "Link")
	c.Expect(link.Attr("rel")).To(Equal("download:default"))
	c.Expect(string(c.get(link.Attr("href")).body)).To(Equal("0123456789"))

	c.ok(http.MethodPut, media+"/metadata/k",
		`<MetadataValue `+xmlns+
			` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><TypedValue xsi:type="MetadataStringValue"><Value>v</Value></TypedValue></MetadataValue>`)
	c.ok(http.MethodDelete, media, "")
	c.refused(http.MethodGet, media, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodGet, link.Attr("href"), "", 404, "NOT_FOUND")
	c.Expect(c.sim.State().Uploads).To(BeEmpty())
}

func TestDeletionRemovesMetadataAccessAndUploads(t *testing.T) {
	c := start(t)
	c.as("admin")
	media := c.iso("tools", "0123456789")
	catalog := c.catalogPath()
	admin := strings.Replace(catalog, "/api/", "/api/admin/", 1)
	org := c.model()
	network := "/api/admin/network/" + org.VDCs[0].Networks[1].ID
	template := "/api/vAppTemplate/vappTemplate-" + org.Catalogs[0].Templates[0].ID
	for _, path := range []string{media, admin, network, template} {
		c.ok(http.MethodPut, path+"/metadata/k",
			`<MetadataValue `+xmlns+
				` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><TypedValue xsi:type="MetadataStringValue"><Value>v</Value></TypedValue></MetadataValue>`)
	}
	shared := c.call(http.MethodPost, "/api/org/"+org.ID+strings.TrimPrefix(catalog, "/api")+"/action/controlAccess",
		c.sharing(map[string]string{"ccm": "ReadOnly"}))
	c.Expect(shared.status).To(Equal(http.StatusOK), string(shared.body))

	c.Expect(c.call(http.MethodDelete, admin+"?recursive=true&force=true", "").status).To(BeElementOf(http.StatusAccepted, http.StatusNoContent))
	c.ok(http.MethodDelete, cloudAPI+"orgVdcNetworks/urn:vcloud:network:"+org.VDCs[0].Networks[1].ID, "")

	state := c.sim.State()
	c.Expect(state.Metadata).To(BeEmpty())
	c.Expect(state.Access).To(BeEmpty())
	c.Expect(state.Uploads).To(BeEmpty())
}

func TestRejectedUploads(t *testing.T) {
	c := start(t)
	c.as("admin")
	upload := c.catalogPath() + "/action/upload"
	media := c.promise("tools", 10)
	link := c.get(media).xml.At("Files", "File", "Link").Attr("href")
	for _, tc := range []struct {
		name, body string
	}{
		{"the name of another media", `<Media ` + xmlns + ` name="tools" imageType="iso" size="1"/>`},
		{
			"a name of a template",
			`<Media ` + xmlns + ` name="` + c.model().Catalogs[0].Templates[0].Name + `" imageType="iso" size="1"/>`,
		},
		{"no name", `<Media ` + xmlns + ` imageType="iso" size="1"/>`},
		{"no size", `<Media ` + xmlns + ` name="x" imageType="iso"/>`},
		{"an unknown image type", `<Media ` + xmlns + ` name="x" imageType="tape" size="1"/>`},
		{"something else", `<Disk ` + xmlns + ` name="x"/>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			NewWithT(t).Expect(c.call(http.MethodPost, upload, tc.body).status).To(Equal(http.StatusBadRequest))
		})
	}
	c.Expect(c.send(link, "56789", 5, 10).status).To(Equal(http.StatusRequestedRangeNotSatisfiable),
		"the preceding bytes are missing")
	c.Expect(c.send(strings.Replace(link, "file", "other", 1), "x", 0, 1).status).To(Equal(http.StatusNotFound))
	c.refused(http.MethodDelete, media, "", 400, "BUSY_ENTITY")

	task := c.get(media).xml.At("Tasks", "Task").Attr("href")
	c.Expect(c.call(http.MethodPost, task+"/action/cancel", "").status).To(Equal(http.StatusNoContent))
	c.refused(http.MethodGet, media, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.Expect(c.send(link, "0", 0, 10).status).To(Equal(http.StatusNotFound), "the transfer is deleted with its item")
}

func TestMediaInTheDriveOfAVM(t *testing.T) {
	c := start(t)
	c.as("admin")
	vm := c.vm(c.vapp("cluster"), "node")
	media := c.iso("tools", "0123456789")
	params := `<MediaInsertOrEjectParams ` + xmlns + `><Media href="` + c.sim.URL() + media + `"/></MediaInsertOrEjectParams>`
	c.ok(http.MethodPost, vm+"/media/action/insertMedia", params)
	c.Expect(string(c.get(vm).body)).To(ContainSubstring("vmware.cdrom.iso"))
	c.refused(http.MethodPost, vm+"/media/action/insertMedia", params, 400, "BAD_REQUEST")
	c.refused(http.MethodDelete, media, "", 400, "BAD_REQUEST")
	c.refused(http.MethodGet, vm+"/question", "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")

	c.ok(http.MethodPost, vm+"/media/action/ejectMedia", params)
	c.Expect(string(c.get(vm).body)).NotTo(ContainSubstring("vmware.cdrom.iso"))
	item := "/api/catalogItem/" + c.model().Catalogs[0].Media[0].ItemID
	c.Expect(c.call(http.MethodDelete, item, "").status).To(Equal(http.StatusNoContent))
	c.Expect(c.records("type=media")).To(BeEmpty())
}

func TestMediaRequiresRights(t *testing.T) {
	c := start(t, withUsers("vApp User", "other"))
	c.as("admin")
	media := c.iso("tools", "0123456789")
	c.as("other")
	c.get(media)
	c.refused(http.MethodDelete, media, "", 403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
	c.refused(http.MethodPost, c.catalogPath()+"/action/upload", `<Media `+xmlns+` name="x" imageType="iso" size="1"/>`,
		403, "ACCESS_TO_RESOURCE_IS_FORBIDDEN")
}

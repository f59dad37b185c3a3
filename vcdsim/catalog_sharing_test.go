// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"fmt"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// withOtherOrg adds the organization "other", which has a catalog author and a vApp author.
func withOtherOrg(cfg *vcdsim.Config) {
	other := vcdsim.Minimal().Orgs[1]
	other.Name = "other"
	other.Users = []vcdsim.User{
		{Name: "author", Password: "password", Role: "Catalog Author"},
		{Name: "user", Password: "password", Role: "vApp Author"},
	}
	cfg.Model.Orgs = append(cfg.Model.Orgs, other)
}

// ofOther returns a client of a user of the organization "other".
func (c *client) ofOther(user string) *client {
	other := *c
	other.token = ""
	other.token = other.login(user, "other", "password").header.Get("X-VMWARE-VCLOUD-ACCESS-TOKEN")
	return &other
}

// publish publishes the first catalog to all organizations, or ends that.
func (c *client) publish(path string, published bool) {
	body := fmt.Sprintf(`<PublishCatalogParams %s><IsPublished>%t</IsPublished></PublishCatalogParams>`, xmlns, published)
	a := c.call(http.MethodPost, path+"/action/publish", body)
	c.Expect(a.status).To(Equal(http.StatusNoContent), string(a.body))
}

// catalogsOf returns the number of catalogs with the name of the first one that the caller can see.
func (c *client) catalogsOf() int {
	return len(c.records("type=catalog&filter=name==" + c.model().Catalogs[0].Name + ";orgName==acme"))
}

func TestAPublishedCatalogIsVisibleInAllOrganizations(t *testing.T) {
	c := start(t, withOtherOrg)
	admin := c.user("admin")
	catalog := c.model().Catalogs[0]
	path := "/api/admin/catalog/" + catalog.ID
	template := "/api/vAppTemplate/vappTemplate-" + catalog.Templates[0].ID
	author := c.ofOther("author")
	user := c.ofOther("user")
	c.Expect(author.catalogsOf()).To(BeZero())

	admin.publish(path, true)

	c.Expect(admin.get(path).xml.Bool("IsPublished")).To(BeTrue())
	c.Expect(admin.get("/api/catalog/" + catalog.ID).xml.Bool("IsPublished")).To(BeTrue())
	for _, kind := range []string{"catalog", "catalogItem", "vAppTemplate"} {
		c.Expect(admin.records("type=" + kind)[0].Attr("isPublished")).To(Equal("true"))
	}
	c.Expect(author.catalogsOf()).To(Equal(1))
	author.get("/api/catalog/" + catalog.ID)
	author.get(template)
	author.get(template + "/metadata")
	author.refused(http.MethodPost, path+"/metadata", `<Metadata `+xmlns+`/>`, 403, forbiddenCode)
	author.refused(http.MethodPost, path+"/action/publish", `<PublishCatalogParams `+xmlns+`/>`, 403, forbiddenCode)
	author.refused(http.MethodDelete, path, "", 403, forbiddenCode)
	c.Expect(user.catalogsOf()).To(BeZero(), "the role lacks the right to view published catalogs")
	user.refused(http.MethodGet, template, "", 403, forbiddenCode)

	admin.publish("/api/catalog/"+catalog.ID, false)

	c.Expect(author.catalogsOf()).To(BeZero())
	author.refused(http.MethodGet, template, "", 403, forbiddenCode)
}

func TestPublishingACatalogRequiresItsRight(t *testing.T) {
	c := start(t, withUsers("vApp Author", "other"))
	path := "/catalog/" + c.model().Catalogs[0].ID + "/action/publish"

	for _, base := range []string{"/api", "/api/admin"} {
		c.Expect(c.user("other").refused(http.MethodPost, base+path, "", 403, forbiddenCode)).
			To(ContainSubstring("Catalog: Publish"))
	}
}

func TestACatalogIsSharedWithAnOrganization(t *testing.T) {
	c := start(t, withOtherOrg)
	catalog := c.model().Catalogs[0]
	path := "/api/catalog/" + catalog.ID
	user := c.ofOther("user")
	share := func(href string) {
		c.user("admin").must(http.MethodPost, path+"/action/controlAccess", `<ControlAccessParams `+xmlns+
			`><IsSharedToEveryone>false</IsSharedToEveryone><AccessSettings><AccessSetting><Subject href="`+href+
			`"/><AccessLevel>ReadOnly</AccessLevel></AccessSetting></AccessSettings></ControlAccessParams>`)
	}
	share(c.userHref("admin"))
	c.Expect(user.catalogsOf()).To(BeZero(), "a user of its own organization")

	share(c.sim.URL() + "/api/admin/org/" + c.sim.State().Model.Orgs[2].ID)

	c.Expect(user.catalogsOf()).To(Equal(1))
	vdc := "/api/vdc/" + c.sim.State().Model.Orgs[2].VDCs[0].ID
	user.ok(http.MethodPost, vdc+"/action/instantiateVAppTemplate", `<InstantiateVAppTemplateParams `+xmlns+
		` name="shared" powerOn="false"><Source href="`+c.sim.URL()+`/api/vAppTemplate/vappTemplate-`+catalog.Templates[0].ID+
		`"/></InstantiateVAppTemplateParams>`)
	user.refused(http.MethodPost, path+"/action/upload", `<Media `+xmlns+` name="tools" imageType="iso" size="1"/>`, 403, forbiddenCode)

	c.user("admin").must(http.MethodPost, path+"/action/controlAccess",
		`<ControlAccessParams `+xmlns+`><IsSharedToEveryone>true</IsSharedToEveryone><EveryoneAccessLevel>ReadOnly</EveryoneAccessLevel></ControlAccessParams>`)
	c.Expect(user.catalogsOf()).To(BeZero(), "everyone is the users of its own organization")
}

// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheSitePresentsOnlyItsOwnCertificate(t *testing.T) {
	c := start(t)
	own, err := url.Parse(c.sim.URL())
	c.Expect(err).NotTo(HaveOccurred())
	probe := func(host, port string) map[string]any {
		a := c.call(http.MethodPost, cloudAPI+"testConnection", fmt.Sprintf(`{"host":%q,"port":%s,"secure":true}`, host, port))
		c.Expect(a.status).To(Equal(http.StatusOK), string(a.body))
		return a.json["targetProbe"].(map[string]any)
	}

	shown := probe(own.Hostname(), own.Port())
	c.Expect(shown).To(And(HaveKeyWithValue("canConnect", true), HaveKeyWithValue("sslHandshake", true)))
	block, _ := pem.Decode([]byte(shown["certificateChain"].(string)))
	certificate, err := x509.ParseCertificate(block.Bytes)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(certificate.VerifyHostname(own.Hostname())).To(Succeed())

	c.Expect(probe("other.example", "443")).To(And(HaveKeyWithValue("canConnect", false),
		HaveKeyWithValue("certificateChain", BeNil())))
}

func TestATemplateIsImportedFromASiteDownload(t *testing.T) {
	c := start(t, manual)
	c.as("admin")
	media := c.iso("descriptor", descriptor)
	c.ok(http.MethodPost, media+"/action/enableDownload", "")
	source := c.get(media).xml.At("Files", "File", "Link").Attr("href")
	upload := func(name, source string) string {
		return `<UploadVAppTemplateParams ` + xmlns + ` name="` + name + `" sourceHref="` + source + `"/>`
	}

	made := c.call(http.MethodPost, c.catalogPath()+"/action/upload", upload("imported", source))
	c.Expect(made.status).To(Equal(http.StatusCreated), string(made.body))
	template := c.get(made.xml.At("Entity").Attr("href")).xml
	c.Expect(c.finish(template.At("Tasks", "Task")).Attr("status")).To(Equal("success"))
	template = c.get(template.Attr("href")).xml
	c.Expect(template.At("Children").All("Vm")).NotTo(BeEmpty())

	c.Expect(c.refused(http.MethodPost, c.catalogPath()+"/action/upload", upload("other", "https://other.example/x.ovf"), 400,
		"BAD_REQUEST")).To(ContainSubstring("cannot be reached"))
}

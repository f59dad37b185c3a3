// SPDX-License-Identifier: Apache-2.0

package vcdsim_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// groundTruth finds VMware's schemas, which are not part of the project.
func groundTruth(t *testing.T) string {
	t.Helper()
	for _, dir := range []string{os.Getenv("VCD_GROUNDTRUTH"), "../../shared/groundtruth"} {
		if _, err := os.Stat(filepath.Join(dir, "check-xml")); dir != "" && err == nil {
			return dir
		}
	}
	t.Skip("set VCD_GROUNDTRUTH to a folder with VMware's XML schemas and the script check-xml to run this test")
	return ""
}

// TestDocumentsAreValid checks every kind of XML document against VMware's schemas.
func TestDocumentsAreValid(t *testing.T) {
	dir := groundTruth(t)
	if _, err := exec.LookPath("xmllint"); err != nil {
		t.Skip("xmllint (Debian's libxml2-utils) is not installed")
	}
	c := start(t, manual, func(cfg *vcdsim.Config) { cfg.Model.Orgs[1].RuntimeLease = vcdsim.Duration(24 * time.Hour) })
	vapp := c.vapp("cluster")
	vm := c.vm(vapp, "node")
	c.ok(http.MethodPut, vm+"/productSections",
		`<ProductSectionList `+xmlns+
			`><ovf:ProductSection><ovf:Info/><ovf:Property ovf:key="user-data" ovf:type="string"><ovf:Value ovf:value="x"/></ovf:Property></ovf:ProductSection></ProductSectionList>`)
	c.ok(http.MethodPost, vm+"/action/reconfigureVm", userdata)
	disk := c.ok(http.MethodPost, c.vdc()+"/disk",
		`<DiskCreateParams `+xmlns+`><Disk name="data" sizeMb="1024"/></DiskCreateParams>`).xml.Attr("href")
	c.ok(http.MethodPost, vm+"/disk/action/attach",
		`<DiskAttachOrDetachParams `+xmlns+`><Disk href="`+disk+`"/></DiskAttachOrDetachParams>`)
	c.ok(http.MethodPost, vm+"/power/action/powerOn", "")
	c.ok(http.MethodPut, vapp+"/metadata/k",
		`<MetadataValue `+xmlns+
			` xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><TypedValue xsi:type="MetadataStringValue"><Value>v</Value></TypedValue></MetadataValue>`)
	c.as("admin")
	media := c.sim.URL() + c.iso("tools", "0123456789")
	c.ok(http.MethodPost, vm+"/media/action/insertMedia",
		`<MediaInsertOrEjectParams `+xmlns+`><Media href="`+media+`"/></MediaInsertOrEjectParams>`)
	second := c.vm(vapp, "second")
	rule := c.ok(http.MethodPost, c.vdc()+"/vmAffinityRules/",
		c.affinity("apart", "Anti-Affinity", true, vm, second)).xml.At("Owner").Attr("href")
	c.ok(http.MethodPost, second+"/action/createSnapshot", "")
	uploading := c.promise("unfinished", 10)
	unfinished := c.promiseTemplate("unfinished-template")
	task := c.call(http.MethodPost, vapp+"/action/recomposeVApp",
		recompose(c.item("busy", nic("DHCP", ""), ""))).xml.Attr("href")

	m := c.model()
	template := m.Catalogs[0].Templates[0]
	for name, path := range map[string]string{
		"session":            "/api/session",
		"org-list":           "/api/org",
		"org":                "/api/org/" + m.ID,
		"vdc":                c.vdc(),
		"vapp":               vapp,
		"vm":                 vm,
		"task":               task,
		"network":            "/api/network/" + m.VDCs[0].Networks[0].ID,
		"vapp-network":       c.get(vapp).xml.At("NetworkConfigSection", "NetworkConfig").All("Link")[0].Attr("href"),
		"storage-profile":    "/api/vdcStorageProfile/" + m.VDCs[0].StorageProfiles[0].ID,
		"catalog":            "/api/catalog/" + m.Catalogs[0].ID,
		"catalog-item":       "/api/catalogItem/" + template.ItemID,
		"template":           "/api/vAppTemplate/vappTemplate-" + template.ID,
		"template-lease":     "/api/vAppTemplate/vappTemplate-" + template.ID + "/leaseSettingsSection/",
		"media":              media,
		"media-item":         "/api/catalogItem/" + m.Catalogs[0].Media[0].ItemID,
		"q-media":            "/api/query?type=media",
		"rule":               rule,
		"rules":              c.vdc() + "/vmAffinityRules/",
		"snapshot":           second + "/snapshotSection",
		"uploading":          uploading,
		"uploading-template": unfinished,
		"disk":               disk,
		"attached":           disk + "/attachedVms",
		"network-config":     vapp + "/networkConfigSection",
		"lease":              vapp + "/leaseSettingsSection",
		"vapp-metadata":      vapp + "/metadata",
		"metadata-value":     vapp + "/metadata/k",
		"nics":               vm + "/networkConnectionSection",
		"customization":      vm + "/guestCustomizationSection",
		"hardware":           vm + "/virtualHardwareSection",
		"disks":              vm + "/virtualHardwareSection/disks",
		"network-cards":      vm + "/virtualHardwareSection/networkCards",
		"cpu":                vm + "/virtualHardwareSection/cpu",
		"memory":             vm + "/virtualHardwareSection/memory",
		"product":            vm + "/productSections",
		"owner":              vapp + "/owner",
		"q-vm":               "/api/query?type=vm&links=true",
		"q-vapp":             "/api/query?type=vApp",
		"q-vdc":              "/api/query?type=orgVdc",
		"q-network":          "/api/query?type=orgVdcNetwork",
		"q-profile":          "/api/query?type=orgVdcStorageProfile",
		"q-catalog":          "/api/query?type=catalog",
		"q-item":             "/api/query?type=catalogItem",
		"q-template":         "/api/query?type=vAppTemplate",
		"q-task":             "/api/query?type=task&pageSize=2",
		"q-disk":             "/api/query?type=disk",
		"q-org":              "/api/query?type=organization",
		"access":             vapp + "/controlAccess",
		"q-vapp-network":     "/api/query?type=vAppNetwork",
		"q-gateway":          "/api/query?type=edgeGateway",
		"tasks":              "/api/tasksList/" + m.ID,
		"error":              "/api/vApp/vm-11111111-2222-3333-4444-555555555555",
	} {
		t.Run(name, func(t *testing.T) {
			body := record.Published(c.call(http.MethodGet, path, "").body)
			file := filepath.Join(t.TempDir(), name+".xml")
			if err := os.WriteFile(file, body, 0o600); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(filepath.Join(dir, "check-xml"), file).CombinedOutput(); err != nil {
				t.Errorf("%s\n%s", out, body)
			}
		})
	}
}

// SPDX-License-Identifier: Apache-2.0

package terraform

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/gomega"
)

// A resource is a resource in a Terraform state.
type resource struct {
	Address string         `json:"address"`
	Type    string         `json:"type"`
	Mode    string         `json:"mode"`
	Values  map[string]any `json:"values"`
}

func (r resource) text(name string) string {
	value, _ := r.Values[name].(string)
	return value
}

// A resourceChange is the planned change of a resource.
type resourceChange struct {
	Address string `json:"address"`
	Type    string `json:"type"`
	Change  struct {
		Before    map[string]any  `json:"before"` // the imported values
		Importing json.RawMessage `json:"importing"`
	} `json:"change"`
}

// notImported lists the attributes that an import does not set, by type, because only the configuration contains them.
var notImported = map[string][]string{
	"vcd_network_routed_v2":     {"metadata_entry"}, // for networks in a data center group
	"vcd_nsxt_app_port_profile": {"context_id"},
	"vcd_api_token":             {"allow_token_file", "file_name"},
	"vcd_catalog":               {"delete_force", "delete_recursive"},
	"vcd_catalog_media":         {"media_path", "upload_piece_size"},
	"vcd_catalog_vapp_template": {"capture_vapp", "ova_path", "upload_piece_size"},
	"vcd_library_certificate":   {"private_key"},
	"vcd_org_user":              {"password"},
	"vcd_rde":                   {"entity_in_sync", "input_entity", "resolve"},
	"vcd_vapp":                  {"power_on"},
	"vcd_vapp_network":          {"reboot_vapp_on_removal"},
	"vcd_vapp_org_network":      {"reboot_vapp_on_removal"},
	"vcd_vapp_vm":               machineNotImported,
	"vcd_vm":                    machineNotImported,
}

// machineNotImported lists these attributes for VMs. VCD does not expose the source of a VM.
var machineNotImported = []string{
	"accept_all_eulas", "boot_image_id", "catalog_name", "imported", "override_template_disk", "power_on", "template_name",
	"vapp_template_id",
}

// fromProvider lists the attributes that default to the provider's configuration. An import sets them.
var fromProvider = []string{"org", "vdc"}

// importID returns the ID with which the provider imports a resource, or "" if the resource is not imported.
func (w *workspace) importID(r resource) string {
	org := w.name("org", "acme")
	vdc := w.name("vdc", "acme-vdc")
	gateway := w.name("gateway", "acme-vdc-gateway")
	owner := w.name("group", vdc)
	parts := []string{}
	switch r.Type {
	case "vcd_network_routed_v2", "vcd_nsxt_app_port_profile", "vcd_nsxt_dynamic_security_group":
		parts = []string{org, owner, r.text("name")}
	case "vcd_network_isolated_v2", "vcd_vapp", "vcd_vm", "vcd_vm_affinity_rule":
		parts = []string{org, vdc, r.text("name")}
	case "vcd_nsxt_network_dhcp":
		parts = []string{org, owner, "tf-app"}
	case "vcd_nsxt_network_dhcp_binding":
		parts = []string{org, owner, "tf-app", r.text("name")}
	case "vcd_nsxt_ip_set", "vcd_nsxt_security_group", "vcd_nsxt_nat_rule", "vcd_nsxt_alb_pool", "vcd_nsxt_alb_virtual_service",
		"vcd_nsxt_edgegateway_static_route":
		parts = []string{org, owner, gateway, r.text("name")}
	case "vcd_nsxt_firewall", "vcd_nsxt_edgegateway_dns", "vcd_nsxt_edgegateway_dhcpv6", "vcd_nsxt_edgegateway_dhcp_forwarding":
		parts = []string{org, owner, gateway}
	case "vcd_nsxt_distributed_firewall":
		parts = []string{org, owner}
	case "vcd_catalog", "vcd_org_user", "vcd_role", "vcd_security_tag", "vcd_service_account":
		parts = []string{org, r.text("name")}
	case "vcd_library_certificate":
		parts = []string{org, r.text("alias")}
	case "vcd_nsxt_alb_virtual_service_http_req_rules":
		parts = []string{org, owner, gateway, "tf-web"}
	case "vcd_catalog_vapp_template", "vcd_catalog_media":
		parts = []string{org, "tf-images", r.text("name")}
	case "vcd_catalog_access_control":
		parts = []string{org, "tf-images"}
	case "vcd_vapp_access_control":
		parts = []string{org, vdc, "tf-app"}
	case "vcd_vapp_network":
		parts = []string{org, vdc, r.text("vapp_name"), r.text("name")}
	case "vcd_vapp_org_network":
		parts = []string{org, vdc, r.text("vapp_name"), r.text("org_network_name")}
	case "vcd_vapp_vm":
		parts = []string{org, vdc, r.text("vapp_name"), r.text("name")}
	case "vcd_independent_disk":
		parts = []string{org, vdc, r.text("id")}
	case "vcd_vm_internal_disk":
		parts = []string{org, vdc, r.text("vapp_name"), r.text("vm_name"), r.text("id")}
	case "vcd_ip_space_ip_allocation":
		parts = []string{org, w.name("ip_space", ""), r.text("type"), r.text("ip_address")}
	case "vcd_api_token":
		parts = []string{r.text("name")}
	case "vcd_rde_interface", "vcd_rde_type":
		parts = []string{r.text("vendor"), r.text("nss"), r.text("version")}
	case "vcd_rde":
		parts = []string{r.text("id")}
	}
	return strings.Join(parts, separator)
}

// separator separates the parts of an import ID. The default separator, a dot, also occurs in versions.
const separator = "|"

// name returns the value of a string variable, the first element of a list variable, or the given default.
func (w *workspace) name(variable, otherwise string) string {
	switch value := w.variables[variable].(type) {
	case string:
		return value
	case []string:
		if len(value) > 0 {
			return value[0]
		}
	}
	return otherwise
}

// expectImports imports all importable resources into a separate state, and compares it with the state in which they
// were created.
func (w *workspace) expectImports(revision int) {
	w.t.Helper()
	other := w.fresh()
	other.setRevision(revision)
	created := w.plan().Prior.resources() // refreshed by the plan
	types := other.writeImports(created)
	for _, p := range other.plan().Changes {
		if len(p.Change.Importing) == 0 {
			continue
		}
		if differences := p.differences(created[p.Address]); len(differences) > 0 {
			w.t.Errorf("attributes of %s differ after the import (created, imported):\n%s", p.Address, strings.Join(differences, "\n"))
		}
		delete(types, p.Type)
	}
	w.Expect(types).To(BeEmpty(), "types that were not imported")
}

// writeImports writes the import blocks, and returns the set of imported types.
func (w *workspace) writeImports(resources map[string]resource) map[string]bool {
	w.t.Helper()
	var blocks strings.Builder
	types := map[string]bool{}
	for _, r := range resources {
		if id := w.importID(r); id != "" && r.Mode == "managed" {
			fmt.Fprintf(&blocks, "import {\n  to = %s\n  id = %q\n}\n", r.Address, id)
			types[r.Type] = true
		}
	}
	w.Expect(os.WriteFile(filepath.Join(w.dir, "imports.tf"), []byte(blocks.String()), 0o600)).To(Succeed())
	return types
}

// differences lists the attributes of an import that differ from those of the created resource.
func (p resourceChange) differences(created resource) []string {
	var out []string
	for name, value := range created.Values {
		imported := p.Change.Before[name]
		skipped := slices.Contains(notImported[p.Type], name) || slices.Contains(fromProvider, name) && value == nil
		if skipped || sameValue(value, imported) {
			continue
		}
		out = append(out, fmt.Sprintf("  %s: %v, %v", name, value, imported))
	}
	slices.Sort(out)
	return out
}

// sameValue reports whether two values are equal. Empty and missing values are equal. The order of lists is ignored,
// because most are sets.
func sameValue(a, b any) bool {
	a = withoutEmpty(a)
	b = withoutEmpty(b)
	if isEmpty(a) && isEmpty(b) {
		return true
	}
	return cmp.Equal(a, b, cmpopts.SortSlices(func(x, y any) bool { return fmt.Sprint(x) < fmt.Sprint(y) }))
}

// A plan is the JSON output for a plan.
type plan struct {
	Changes []resourceChange `json:"resource_changes"`
	Prior   state            `json:"prior_state"`
}

// A state is the JSON output for a state.
type state struct {
	Values struct {
		Root struct {
			Resources []resource `json:"resources"`
		} `json:"root_module"`
	} `json:"values"`
}

// resources returns the resources in the root module by address.
func (s state) resources() map[string]resource {
	out := map[string]resource{}
	for _, r := range s.Values.Root.Resources {
		out[r.Address] = r
	}
	return out
}

// plan creates and returns a plan.
func (w *workspace) plan() plan {
	w.t.Helper()
	code, out := w.run("plan", "-input=false", "-no-color", "-out=plan")
	w.Expect(code).To(BeZero(), "planning:\n%s", out)
	code, out = w.run("show", "-json", "plan")
	w.Expect(code).To(BeZero(), out)
	var p plan
	w.Expect(json.Unmarshal([]byte(out), &p)).To(Succeed())
	return p
}

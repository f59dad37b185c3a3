// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/test/framework/audit"
)

const lists = "API servers that cannot stream lists to those who watch are asked for lists"

// unusedRights are the rights that these tests need not use, and why the manager has them.
var unusedRights = []audit.Allowance{
	{
		Verbs:     []string{"list"},
		Resources: []string{"secrets", "namespaces"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "apiextensions.k8s.io",
		Resources: []string{"customresourcedefinitions"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "cluster.x-k8s.io",
		Resources: []string{"clusters", "machines"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "addons.cluster.x-k8s.io",
		Resources: []string{"clusterresourcesets"},
		Why:       lists,
	},
	{
		Verbs:     []string{"list"},
		Group:     "ipam.cluster.x-k8s.io",
		Resources: []string{"ipaddressclaims", "ipaddresses"},
		Why:       lists,
	},
	{
		Verbs: []string{"list"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclusters", "vcdmachines", "vcdmachinetemplates", "vcdidentities",
			"vcdclusteridentities",
		},
		Why: lists,
	},
	{
		Verbs:     []string{"create"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdidentities"},
		Why:       "credentials of CAPVCD are moved to one: TestUpgradeFromCAPVCD in test/capvcd",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "ipam.cluster.x-k8s.io",
		Resources: []string{"ipaddressclaims"},
		Why:       "claims are adopted after a restore from a backup: TestAClaimSurvivesAMove in controllers/internal/ipam",
	},
	{
		Verbs:     []string{"watch"},
		Resources: []string{"namespaces"},
		Why: "only an identity that selects namespaces by label needs them; " +
			"TestADisallowedNamespaceIsCheckedAgain in controllers",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "events.k8s.io",
		Resources: []string{"events"},
		Why:       "an event that repeats within minutes is counted up",
	},
	{
		Verbs:     []string{"patch"},
		Resources: []string{"events"},
		Why:       "so is that of a manager that becomes the working one again",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "apiextensions.k8s.io",
		Resources: []string{"customresourcedefinitions/status"},
		Why:       "Cluster API's migrator, after a release that changes the stored version",
	},
	{
		Verbs: []string{"get", "list"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclustertemplates", "vcdmachinetemplates", "vcdfailuredomains", "vcddeploymentzones", "vcdremediations",
			"vcdremediationtemplates",
		},
		Why: "Cluster API's migrator, after a release that changes the stored version",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdclustertemplates", "vcdmachinetemplates", "vcdremediationtemplates"},
		Why:       "so does the migrator",
	},
	{
		Verbs:     []string{"patch"},
		Group:     "infrastructure.cluster.x-k8s.io",
		Resources: []string{"vcdclusteridentities", "vcdclusteridentities/status"},
		Why:       "their controller is tested in controllers",
	},
	{
		Verbs:     []string{"list"},
		Group:     "cluster.x-k8s.io",
		Resources: []string{"machinedeployments"},
		Why:       "shown in the runtime defined entities of clusters, which are tested in controllers/rde",
	},
	{
		Verbs:     []string{"get"},
		Group:     "controlplane.cluster.x-k8s.io",
		Resources: []string{"kubeadmcontrolplanes"},
		Why:       "shown in the runtime defined entities of clusters, which are tested in controllers/rde",
	},
	{
		Verbs: []string{"update"},
		Group: "infrastructure.cluster.x-k8s.io",
		Resources: []string{
			"vcdclusters/finalizers", "vcdmachines/finalizers", "vcdidentities/finalizers",
			"vcdclusteridentities/finalizers",
		},
		Why: "asked for inside the API server, when we set blockOwnerDeletion: " +
			"OwnerReferencesPermissionEnforcement is on here",
	},
}

// auditRights compares the requests of the manager with the role that it is shipped with. No request may have been
// denied. After all tests, no right may be unused without a reason.
func auditRights(code int) int {
	requests, err := readAudit(shared.AuditLog())
	if err != nil {
		return report(err)
	}
	rights, err := shippedRights(shared.Components)
	if err != nil {
		return report(err)
	}
	found := audit.Compare(requests, "system:serviceaccount:"+framework.Namespace+":capvcd-manager", rights)
	for _, denied := range found.Denied {
		code = report(fmt.Errorf("the manager may not %s", denied))
	}
	if code != 0 || !everythingRan() {
		return code
	}
	left, stale := audit.Excuse(found.Unused, rights, unusedRights)
	for _, right := range left {
		code = report(fmt.Errorf(
			"the right to %s was not used: remove it, use it in a test, or explain it in unusedRights", right))
	}
	for _, a := range stale {
		code = report(fmt.Errorf("unusedRights excuses %v %v of %q, which is not granted", a.Verbs, a.Resources,
			a.Group))
	}
	fmt.Fprintf(os.Stderr,
		"The manager made %d requests to the API server; %d rights, none denied, %d unused for a reason\n",
		found.Requests, len(rights), len(found.Unused)-len(left))
	return code
}

// everythingRan reports whether no test was skipped.
func everythingRan() bool {
	return flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.skip").Value.String() == ""
}

func readAudit(path string) ([]audit.Request, error) {
	log, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	return audit.Read(log)
}

// shippedRights returns the rights of the manager's ClusterRole and Role in the components.
func shippedRights(components []byte) ([]audit.Right, error) {
	var rights []audit.Right
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(components), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return rights, nil
		}
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(object.GetKind(), "Role") || isForUsers(object) {
			continue
		}
		role := &rbacv1.ClusterRole{} // a Role has the same rules
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role); err != nil {
			return nil, err
		}
		more, err := audit.RightsOf(role.Rules)
		if err != nil {
			return nil, err
		}
		rights = append(rights, more...)
	}
}

// isForUsers reports whether a role is aggregated to the built-in roles of users.
func isForUsers(role *unstructured.Unstructured) bool {
	for label := range role.GetLabels() {
		if strings.HasPrefix(label, "rbac.authorization.k8s.io/aggregate-to-") {
			return true
		}
	}
	return false
}

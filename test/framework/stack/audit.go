// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"
	"os"
	"path/filepath"
)

// auditPolicy logs the requests of the service accounts of one namespace, and whether they were allowed. It does not
// log request bodies.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts:%s"]
- level: None
`

// AuditLog returns the path of the file with the requests of the audited namespace's service accounts.
func (s *Stack) AuditLog() string {
	return filepath.Join(s.LogDir(), "audit.log")
}

// auditArgs returns the API server's flags for the audit log.
func (s *Stack) auditArgs() ([]string, error) {
	if s.auditNamespace == "" {
		return nil, nil
	}
	policy := filepath.Join(s.dir, "audit-policy.yaml")
	if err := os.WriteFile(policy, fmt.Appendf(nil, auditPolicy, s.auditNamespace), 0o600); err != nil {
		return nil, fmt.Errorf("writing the audit policy: %w", err)
	}
	return []string{
		"--audit-policy-file=" + policy,
		"--audit-log-path=" + s.AuditLog(),
		"--audit-log-maxsize=0",
		"--audit-log-mode=blocking",
	}, nil
}

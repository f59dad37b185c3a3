# SPDX-License-Identifier: Apache-2.0

resource "vcd_role" "operator" {
  name        = "tf-operator"
  description = "Operators, revision ${var.revision}"
  rights = concat(
    ["vApp: Power Operations", "vApp: View ACL", "Catalog: View Private and Shared Catalogs"],
    var.revision > 1 ? ["vApp: Use Console"] : [],
  )
}

resource "vcd_org_user" "operator" {
  name          = "tf-operator"
  full_name     = "Operator ${var.revision}"
  description   = "Operates, revision ${var.revision}"
  role          = vcd_role.operator.name
  password      = "password-${var.revision}"
  email_address = "operator@acme.example"
}

resource "vcd_api_token" "ci" {
  name             = "tf-ci"
  file_name        = "${var.files}/token.json"
  allow_token_file = true
}

resource "vcd_service_account" "ci" {
  name             = "tf-ci"
  role_id          = vcd_role.operator.id
  software_id      = "12345678-1234-1234-1234-1234567890ab"
  software_version = "${var.revision}.0.0"
  uri              = "https://ci.acme.example"
  active           = false
}

resource "vcd_rde_interface" "cluster" {
  provider = vcd.system
  vendor   = "acme"
  nss      = "tfcluster"
  version  = "1.0.0"
  name     = "tf-cluster ${var.revision}"
}

resource "vcd_rde_type" "cluster" {
  provider      = vcd.system
  vendor        = "acme"
  nss           = "tfcluster"
  version       = "1.0.0"
  name          = "tf-cluster"
  description   = "Clusters, revision ${var.revision}"
  interface_ids = [vcd_rde_interface.cluster.id]
  schema = jsonencode({
    type = "object"
    properties = {
      nodes = { type = "integer" }
    }
  })
}

resource "vcd_rde" "cluster" {
  provider     = vcd.system
  org          = var.org
  rde_type_id  = vcd_rde_type.cluster.id
  name         = "tf-cluster"
  resolve      = true
  input_entity = jsonencode({ nodes = var.revision })
}

resource "vcd_org_vdc_access_control" "vdc" {
  shared_with_everyone  = true
  everyone_access_level = "ReadOnly"
}
